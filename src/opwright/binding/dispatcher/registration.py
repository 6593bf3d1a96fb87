"""Registration at torch's dispatcher: `torch.ops.<namespace>.<name>` with its schema, kernels, fake and autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._ops import OpOverload

from opwright.binding.dispatcher.autocast import KEYS
from opwright.binding.dispatcher.results import FUNCTION_TRANSFORMS, as_schema_returns, without_values
from opwright.binding.environment import recording
from opwright.toolchain.process.forks import Lock, hold_off_forks
from opwright.tracing.recording.validation import GoesOn
from opwright.tracing.torch_hooks.layouts.memory_formats import MemoryFormats

_libraries: dict[str, tuple[torch.library.Library, Callable[[], None]]] = {}
_lock = Lock()


def register(
    qualified_name: str,
    parameters: str,
    outputs: int,
    *,
    below_autograd: Callable[..., Any],
    with_autograd: Callable[..., Any],
    under_autocast: Callable[..., Any],
    reference: Callable[..., Any],
    on_replacement: Callable[[], None],
) -> OpOverload:
    """Register an operator; an earlier one of the same name is replaced.

    Args:
        qualified_name: "namespace::name".
        parameters: Its parameters as a schema spells them.
        outputs: How many tensors it returns.
        below_autograd: Serves calls that record no gradients; its results own their memory.
        with_autograd: Serves the rest, transforms included.
        under_autocast: Serves calls under autocast; its results own their memory.
        reference: Returns the shapes and dtypes of the results, on fake tensors.
        on_replacement: Called when an operator of the same name replaces it: the returned overload must not be called
            any more.
    """
    namespace, name = qualified_name.split("::")
    returns = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
    with hold_off_forks(), _lock:
        if qualified_name in _libraries:
            earlier, tell = _libraries.pop(qualified_name)
            tell()
            earlier._destroy()
        library = torch.library.Library(namespace, "FRAGMENT")
        library.define(f"{name}({parameters}) -> {returns}", tags=(torch.Tag.pt2_compliant_tag,))
        library.impl(name, as_schema_returns(below_autograd), "CompositeExplicitAutograd")
        library.impl(name, as_schema_returns(with_autograd), "Autograd")
        library.impl(name, as_schema_returns(with_autograd), FUNCTION_TRANSFORMS)
        for key in KEYS.values():
            library.impl(name, as_schema_returns(under_autocast), key)
        torch.library.register_fake(qualified_name, as_schema_returns(_fake(reference)), lib=library)
        _libraries[qualified_name] = (library, on_replacement)
        overload = getattr(getattr(torch.ops, namespace), name).default
    assert isinstance(overload, OpOverload)
    return overload


def keeping_sizes_inside(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same on fake tensors; only data-dependent sizes of the results concern the caller."""

    def called(*args: Any, **kwargs: Any) -> Any:
        mode = detect_fake_mode((args, kwargs))
        if mode is None or mode.shape_env is None:
            return function(*args, **kwargs)
        from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols  # imports sympy

        with mode.shape_env.ignore_fresh_unbacked_symbols():
            returned = function(*args, **kwargs)
        return function(*args, **kwargs) if free_unbacked_symbols(returned) else returned

    return called


def _fake(reference: Callable[..., Any]) -> Callable[..., Any]:
    def fake(*args: Any, **kwargs: Any) -> Any:
        # For a reference that differentiates inside, or validates values.
        with recording(), MemoryFormats(), GoesOn():
            return without_values(keeping_sizes_inside(reference)(*args, **kwargs))

    return fake

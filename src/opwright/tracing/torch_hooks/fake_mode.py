"""A fake-tensor mode without the cost of importing torch's compiler.

`FakeTensorMode` and `ShapeEnv` read the configuration of torch's compiler and log every symbol, and so import all of
it: 0.8 s of a first call that should take about one. Here they use private copies of those few functions, with the
default values of the compiler's configuration. Other threads are not affected.
"""

from __future__ import annotations

import inspect
import logging
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Self, TypeVar

import torch
import torch._decomp
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import SLoc
from torch._ops import OpOverload
from torch._subclasses.fake_impls import op_implementations_checks, op_implementations_dict
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from opwright.errors import OpwrightError
from opwright.tracing.torch_hooks.disabled import spare_the_compiler
from opwright.tracing.torch_hooks.isolation import keep_device_guard
from opwright.tracing.torch_hooks.layouts.row_major import VIEWS, RowMajor
from opwright.tracing.torch_hooks.private_copies import names_of, private_copy
from opwright.tracing.torch_hooks.unseen import Unseen

_CONFIGURATION = "torch._dynamo.config"
_VALIDATOR = "torch.fx.experimental.validator"
_IMPLEMENTATIONS = "op_implementations_checks"  # of operations on fake tensors, as pairs of a predicate and a function
_SYMBOLIC_SHAPES = "torch.fx.experimental.symbolic_shapes"
_PROFILES = "_custom_ops_profile"  # of custom operators, which only the compiler's configuration sets

aten = torch.ops.aten

_SEEN = VIEWS | {aten.select.int, aten.slice.Tensor}

Result = TypeVar("Result")


class _Configuration:
    """The defaults of the compiler's configuration that fake tensors read."""

    fake_tensor_cache_enabled = False
    fake_tensor_cache_crosscheck_enabled = False

    def __getattr__(self, name: str) -> Any:
        if name != _PROFILES:
            raise AttributeError(name)
        return getattr(sys.modules.get(_CONFIGURATION), name, None)


class _Torch(types.ModuleType):
    """Torch, with only the configuration of its compiler."""

    def __init__(self) -> None:
        super().__init__(torch.__name__)
        self._dynamo = types.SimpleNamespace(config=_Configuration())

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


_SILENT = logging.Logger(FakeTensorMode.__module__)
_SILENT.disabled = True  # errors are raised, or work is tried again
_TORCH = _Torch()


class _Implementations:
    """Torch's implementations of operations on fake tensors, with views at less cost, and convolutions for every size.

    Torch guesses the memory format of a convolution's result from the library that would compute it, which depends on
    bounds such as `batch < 16` that become guards. Nothing here depends on the format: Programs read the strides of
    library results at run time. So our copy treats sizes as unknown in that guess, and torch assumes a contiguous
    result.
    """

    def __init__(self) -> None:
        sizes = types.SimpleNamespace(has_guarding_hint=lambda _: False, has_hint=lambda _: False)
        self._copies = {
            operation: private_copy(op_implementations_dict[operation], {}, {_SYMBOLIC_SHAPES: sizes})
            for operation in (aten.convolution.default, aten.convolution_backward.default)
        }

    def __iter__(self) -> Iterator[tuple[Callable[[OpOverload], bool], Callable[..., Any]]]:
        yield self._copies.__contains__, self._convolution
        yield _SEEN.__contains__, _seen
        yield from op_implementations_checks

    def _convolution(self, mode: FakeTensorMode, operation: OpOverload, *args: Any, **kwargs: Any) -> Any:
        return self._copies[operation](mode, operation, *args, **kwargs)


def _seen(mode: FakeTensorMode, operation: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """See a tensor in another way, by operations that the mode sees.

    Without the mode, PyTorch asks of each whether its tensors are distributed ones, and imports those: 0.3 s.
    """
    with mode:
        return op_implementations_dict[operation](mode, operation, *args, **kwargs)


_NAMES: Mapping[str, Any] = {
    "torch": _TORCH,
    "log": _SILENT,
    "trace_structured": lambda *_, **__: None,
    _IMPLEMENTATIONS: _Implementations(),
}
_MODULES: Mapping[str, Any] = {
    _CONFIGURATION: _TORCH._dynamo.config,
    _VALIDATOR: types.SimpleNamespace(translation_validation_enabled=lambda: False),
}
_COPIED_FOR = frozenset({"trace_structured", "log", "_dynamo", _CONFIGURATION, _VALIDATOR, _IMPLEMENTATIONS})
_RECORDER = "record_shapeenv_event"  # the wrapper that records events for replay, which we never use


def _private_copies(kind: type) -> dict[str, Any]:
    """Copies of a class's functions that would import the compiler; cached ones are left alone."""
    return {
        name: private_copy(member, _NAMES, _MODULES)
        for name, member in vars(kind).items()
        if _COPIED_FOR & names_of(member) and (inspect.unwrap(member) is member or _is_dispatch_or_recorded(member))
    }


def _is_dispatch_or_recorded(member: Any) -> bool:
    wrapper = getattr(member, "__code__", None)
    return wrapper is not None and (member.__name__ == "__torch_dispatch__" or _RECORDER in wrapper.co_qualname)


class LeanShapeEnv(ShapeEnv):
    """Symbolic sizes without a stack summary for every guard, which would import `torch.export`."""

    locals().update(_private_copies(ShapeEnv))

    def _get_stack_summary(self, is_debug: bool = False, framework_loc: str | None = None) -> tuple[SLoc, str]:
        return SLoc(None, None), ""


class LeanFakeTensorMode(Unseen, FakeTensorMode):
    """A fake-tensor mode whose dispatch is not wrapped for the compiler: the wrapper would import it."""

    locals().update(_private_copies(FakeTensorMode))

    def __enter__(self) -> Self:
        keep_device_guard()
        return super().__enter__()


class QuickFakeTensorMode(LeanFakeTensorMode):
    """The same, with short cuts for operations whose results are not in doubt."""

    def __init__(self, sizes: ShapeEnv) -> None:
        super().__init__(shape_env=sizes)
        self.cache_enabled = False
        self._row_major = RowMajor(self)

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = self._row_major.result(func, args, kwargs or {})
        return super().__torch_dispatch__(func, types, args, kwargs or {}) if result is None else result


def fake_mode() -> tuple[FakeTensorMode, ShapeEnv]:
    """Make a fake-tensor mode with symbolic sizes; every input dimension gets a symbol of its own.

    Its cache of results is off: with the symbols of one trace there are hardly any hits, and filling it took half the
    time of a derivation.
    """
    spare_the_compiler()
    sizes = LeanShapeEnv(duck_shape=False, specialize_zero_one=True)
    return QuickFakeTensorMode(sizes), sizes


def with_more_formulas_if_needed(work: Callable[[], Result]) -> Result:
    """Do work that uses a `fake_mode`; if it fails, repeat it with torch's Python dispatcher.

    The Python dispatcher has formulas for symbolic sizes that the C++ one lacks, and takes twice the time.
    """
    try:
        return work()
    except OpwrightError:
        raise
    except Exception:  # reported if it fails again; this one would keep everything alive
        pass
    with enable_python_dispatcher():
        return work()


@cache
def core_decompositions() -> Mapping[OpOverload, Callable[..., Any]]:
    """PyTorch's table of decompositions into core ATen operations, as a plain dictionary.

    The public `core_aten_decompositions` wraps the same table in a class of `torch.export`, whose import costs 0.3 s.
    """
    table = getattr(torch._decomp, "_core_aten_decompositions_post_autograd", None)
    return dict((table or torch._decomp.core_aten_decompositions)())

"""Registration at torch's dispatcher, over what the library of the package has registered for programs in C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from opwright.binding.dispatcher.results import FUNCTION_TRANSFORMS, as_schema_returns, without_values
from opwright.binding.environment import are_abstract, is_recorded
from opwright.deployment.wheels.runtime.packaged import PackagedOperator
from opwright.tracing.torch_hooks.layouts.memory_formats import MemoryFormats

# Every kind of dense tensor has its own key, which goes before the catch-all of the library.
_DEVICES = ("CPU", "CUDA", "XPU", "MPS", "HPU", "PrivateUse1")
_AUTOCAST = ("AutocastCPU", "AutocastCUDA")
_registrations: list[torch.library.Library] = []  # what is registered lasts as long as its library does


def register(operator: PackagedOperator, schema: str, gradients_schema: str | None, *, declared: bool) -> None:
    """Let Python answer for an operator, and put that of its gradients beside it.

    Args:
        operator: Serves the calls; its overloads are set.
        schema: Its schema, without the namespace.
        gradients_schema: That of its gradients; None if it has none.
        declared: Whether the library of the package has declared the operator.
    """
    namespace, name = operator.name.split("::")
    library = torch.library.Library(namespace, "FRAGMENT")
    _registrations.append(library)
    if not declared:
        library.define(schema)
    for device in _DEVICES:
        library.impl(name, operator.serve_below_autograd, device)
    for device in (*_DEVICES, "Meta", "Other", "NestedTensor"):
        library.impl(name, operator.serve_with_autograd, f"Autograd{device}")
    library.impl(name, operator.serve_with_autograd, FUNCTION_TRANSFORMS)
    for key in _AUTOCAST:
        library.impl(name, operator.serve_under_autocast, key)
    torch.library.register_fake(operator.name, _fake(operator.run_reference, operator.bind), lib=library)
    operator.overload = getattr(getattr(torch.ops, namespace), name).default
    if gradients_schema is not None:
        _register_gradients(operator, library, gradients_schema)


def _register_gradients(operator: PackagedOperator, library: torch.library.Library, schema: str) -> None:
    namespace, name = operator.name.split("::")
    name = f"{name}_gradients"
    library.define(schema)
    serve = as_schema_returns(operator.serve_gradients)
    library.impl(name, serve, "CompositeExplicitAutograd")
    library.impl(name, _gradients_with_autograd(operator, serve), "Autograd")
    library.impl(name, serve, FUNCTION_TRANSFORMS)
    positions = operator.differentiable
    fake = as_schema_returns(lambda *given: without_values([given[position] for position in positions]))
    torch.library.register_fake(f"{namespace}::{name}", fake, lib=library)
    operator.gradients_overload = getattr(getattr(torch.ops, namespace), name).default


def _gradients_with_autograd(operator: PackagedOperator, serve: Callable[..., Any]) -> Callable[..., Any]:
    """As one operation where a compiler looks and no gradients of gradients are recorded."""

    def served(*given: Any) -> Any:
        twice = torch.is_grad_enabled() and any(isinstance(g, torch.Tensor) and g.requires_grad for g in given)
        if twice or not (is_recorded() or are_abstract(given)):
            return serve(*given)
        with torch._C._AutoDispatchBelowAutograd():
            return operator.gradients_overload(*given)

    return served


def _fake(reference: Callable[..., Any], bind: Callable[..., Any]) -> Callable[..., Any]:
    """Shapes, dtypes and strides of the results.

    The reference runs at PyTorch's autograd: below it, some functions reach modes as a whole, and their results have
    another shape there where sizes are symbolic (`nll_loss` without a reduction).
    """

    def fake(*args: Any, **kwargs: Any) -> Any:
        with MemoryFormats(), _at_autograd(), torch.no_grad():
            return without_values(reference(*bind(args, kwargs)))

    return fake


def _at_autograd() -> Any:
    """Let functions go through autograd until the end of the block, also where the dispatcher is below it."""
    excluded = torch._C._dispatch_tls_local_exclude_set().remove(torch._C.DispatchKey.AutogradFunctionality)
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded)

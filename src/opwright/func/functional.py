"""`functional_call`: a module with other parameters, run as one operator."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from opwright.binding.environment import is_quiet
from opwright.errors import ModuleUnsupported
from opwright.func.derived import Transform, derived
from opwright.nn import module as served
from opwright.toolchain.process.forks import Lock

Tensors = dict[str, torch.Tensor]

_served: WeakKeyDictionary[nn.Module, nn.Module] = WeakKeyDictionary()
_lock = Lock()


def functional_call(
    module: nn.Module,
    parameter_and_buffer_dicts: Tensors | Sequence[Tensors],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, as `torch.func.functional_call` does, by kernels.

    The call is one operator of all tensors that are given. A module with tensors that are not given, or with buffers
    that its training changes, is called as `opwright.module` calls it.
    """
    given = (parameter_and_buffer_dicts, args, kwargs)
    how: dict[str, Any] = {"tie_weights": bool(tie_weights), "strict": bool(strict)}
    is_known = isinstance(module, nn.Module) and isinstance(parameter_and_buffer_dicts, (dict, list, tuple))
    if not is_known or not is_quiet():
        return torch.func.functional_call(module, *given, **how)
    if _is_given_whole(module, parameter_and_buffer_dicts):
        call = Transform("functional_call", tuple(how.values()), functools.partial(_call, how))
        return derived(module, call)(*given)
    return torch.func.functional_call(_served_once(module), *given, **how)


def _call(how: dict[str, Any], module: Any) -> Any:
    return functools.partial(torch.func.functional_call, module, **how)


def _is_given_whole(module: nn.Module, given: Any) -> bool:
    """Whether all of a module's tensors are given, and none of its own would change."""
    dicts = [given] if isinstance(given, dict) else given
    if not all(isinstance(tensors, dict) for tensors in dicts):
        return False
    return _are_given(module, "", {name for tensors in dicts for name in tensors})


def _are_given(module: nn.Module, prefix: str, names: set[str]) -> bool:
    for held in (module._parameters, module._buffers):  # `named_parameters` takes as long as a small module
        for name, tensor in held.items():
            if tensor is not None and ((module.training and held is module._buffers) or prefix + name not in names):
                return False
    children = module._modules.items()
    return all(child is None or _are_given(child, f"{prefix}{name}.", names) for name, child in children)


def _served_once(module: nn.Module) -> nn.Module:
    with _lock:
        found = _served.get(module)
        if found is None:
            try:
                found = _served[module] = served(module)
            except ModuleUnsupported:  # a scripted module, or a lazy one, runs as it is
                return module
        return found

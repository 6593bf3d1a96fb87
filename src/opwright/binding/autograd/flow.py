"""To which arguments a gradient flows from each result of a function, found by a run without values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

from opwright.binding.returned import Returned

Flow = tuple[frozenset[int], ...]
"""For each tensor that is returned, the positions of arguments."""


def flow_of(reference: Callable[..., Any], args: Sequence[Any]) -> Flow | None:
    """The flow of a call; None where it cannot be told, as of a function that looks at values.

    Args:
        reference: The function, which takes every argument by position.
        args: Those of a compiler or exporter, of which it knows no values.
    """
    with _disable_current_modes(), torch.enable_grad(), FakeTensorMode():
        stand_ins = [_stand_in(arg) for arg in args]
        wanted = [position for position, given in enumerate(stand_ins) if _requires_gradient(given)]
        sources = [stand_ins[position] for position in wanted]
        try:
            made = Returned(reference(*stand_ins)).tensors
            found = [_gradients(tensor, sources) for tensor in made]
        except Exception:  # the compiler runs it too, and says so
            return None
    return tuple(frozenset(p for p, each in zip(wanted, of, strict=True) if each is not None) for of in found)


def _gradients(tensor: torch.Tensor, sources: Sequence[torch.Tensor]) -> Sequence[torch.Tensor | None]:
    if not (tensor.requires_grad and sources):
        return [None] * len(sources)
    cotangent = torch.empty_like(tensor)
    return torch.autograd.grad(tensor, sources, cotangent, allow_unused=True, retain_graph=True)


def _stand_in(arg: Any) -> Any:
    if not isinstance(arg, torch.Tensor):
        return _number(arg)
    shape, strides = map(_number, arg.shape), map(_number, arg.stride())
    made = torch.empty_strided([*shape], [*strides], dtype=arg.dtype, device=arg.device)
    return made.requires_grad_(arg.requires_grad)


def _number(value: Any) -> Any:
    """A number of the trace in place of a symbol, so that nothing is assumed of it."""
    return value.node.hint if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else value


def _requires_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad

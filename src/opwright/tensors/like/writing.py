"""Writing: in-place spellings, and `out=`, by the result of the plain function."""

from __future__ import annotations

from typing import Any

import torch

from opwright.errors import Unhandled
from opwright.tensors.spellings.table import Spelling


def write_into(target: Any, result: Any, spelling: Spelling) -> Any:
    """Write a result into the first argument of an in-place function, and return that.

    A tensor is written to as PyTorch writes, with its shape and its dtype kept. An object of the result's own type
    takes its state over, so that all who have the object see it.

    Raises:
        Unhandled: The result is of another type than the object.
        RuntimeError: The result has another shape than the tensor, or a dtype that would be cut.
    """
    if result is NotImplemented or result is target:
        return result
    if isinstance(target, torch.Tensor):
        return _write(target, result, spelling)
    if type(result) is not type(target):
        raise Unhandled(
            f"{spelling.name} would make a {type(result).__name__} of a {type(target).__name__}, in place",
            hint="use the function that is not in place",
        )
    target.adopt(result)
    return target


def write_out(out: Any, result: Any, spelling: Spelling) -> Any:
    """Write results into what was given as `out=`, and return that.

    Raises:
        Unhandled: What was given as `out=` is no tensor, or not as many as there are results.
        RuntimeError: A result has another shape than its tensor, or a dtype that would be cut.
    """
    if result is NotImplemented:
        return result
    outs = out if isinstance(out, (tuple, list)) else (out,)
    results = result if isinstance(result, (tuple, list)) else (result,)
    if len(outs) != len(results) or not all(isinstance(each, torch.Tensor) for each in outs):
        raise Unhandled(
            f"{spelling.name} cannot write its result into a {type(out).__name__}",
            hint="leave out= away, or give tensors",
        )
    for one, value in zip(outs, results, strict=True):
        if one.numel() == 0 and one.shape != value.shape:
            one.resize_(value.shape)
        _write(one, value, spelling)
    return out


def _write(target: torch.Tensor, result: Any, spelling: Spelling) -> torch.Tensor:
    dense = result if isinstance(result, torch.Tensor) or not hasattr(result, "densify") else result.densify()
    if not isinstance(dense, torch.Tensor):
        dense = torch.as_tensor(dense, device=target.device)
    if dense.shape != target.shape:
        raise RuntimeError(f"{spelling.name}: the result of shape {[*dense.shape]} does not fit into {[*target.shape]}")
    if not torch.can_cast(dense.dtype, target.dtype):
        raise RuntimeError(f"{spelling.name}: result type {dense.dtype} can't be cast to {target.dtype}")
    return target.copy_(dense)

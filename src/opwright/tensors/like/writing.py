"""Writing: in-place spellings, and `out=`, by the result of the plain function."""

from __future__ import annotations

import copy
from typing import Any

import torch

from opwright.errors import HandlerRefused, Unhandled
from opwright.tensors.like.operators import ask
from opwright.tensors.spellings.table import Spelling

_OTHER_SHAPES = frozenset(
    {"as_strided_", "resize_", "resize_as_", "set_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_"}
    | {"unsqueeze_"}
)
"""Functions that are in place and give a tensor another shape."""


def write_into(target: Any, result: Any, spelling: Spelling) -> Any:
    """Write a result into the first argument of an in-place function, and return that.

    A tensor is written to as PyTorch writes, with its shape and its dtype kept. An object of the result's own type
    takes its state over, so that all who have the object see it, and keeps its shape and dtype as a tensor does.

    Raises:
        Unhandled: The result is of another type than the object, or cannot be converted to its dtype.
        RuntimeError: The result has another shape than the target, or a dtype that would be cut.
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
    target.adopt(_fitted(result, target, spelling))
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
    _refuse_other_shape(dense.shape, target.shape)
    _refuse_cut(dense.dtype, target.dtype)
    return target.copy_(dense)


def _fitted(result: Any, target: Any, spelling: Spelling) -> Any:
    """A result as the new state of an object, with its dtype; a type that tells no shape or dtype has none to keep."""
    shapes = _asked(result, "shape"), _asked(target, "shape")
    if spelling.attribute not in _OTHER_SHAPES and None not in shapes:
        _refuse_other_shape(*shapes)
    given, kept = _asked(result, "dtype"), _asked(target, "dtype")
    if given == kept or given is None or kept is None:
        return result
    _refuse_cut(given, kept)
    converted = _converted(result, given, kept)
    if type(converted) is not type(target) or converted.dtype != kept:
        raise Unhandled(
            f"{spelling.name} would make a {kept} {type(target).__name__} {given}, in place",
            hint=f"write a handler that converts: @{type(target).__name__}.implements(torch.Tensor.to)",
        )
    return converted


def _converted(result: Any, given: torch.dtype, wanted: torch.dtype) -> Any:
    """A result in another dtype, by its type's handler of `to`, else by the fields that hold its elements.

    Fields of integers may be indices, so that an object of integers stays what it is.
    """
    if type(result).served_by(torch.Tensor.to) != "fallback":
        return ask(torch.Tensor.to, result, wanted)
    fields = getattr(result, "__dict__", None)
    if fields is None or not (given.is_floating_point or given.is_complex or given is torch.bool):
        return result
    made = copy.copy(result)
    for name, value in fields.items():
        if isinstance(value, torch.Tensor) and value.dtype == given:
            vars(made)[name] = value.to(wanted)
    return made


def _asked(value: Any, name: str) -> Any:
    """The shape or dtype of an object; None if its type does not tell it."""
    try:
        return getattr(value, name)
    except (AttributeError, HandlerRefused, NotImplementedError, Unhandled):
        return None


def _refuse_other_shape(given: torch.Size, kept: torch.Size) -> None:
    if given != kept:
        raise RuntimeError(f"output with shape {[*kept]} doesn't match the broadcast shape {[*given]}")


def _refuse_cut(given: torch.dtype, kept: torch.dtype) -> None:
    if not torch.can_cast(given, kept):
        raise RuntimeError(f"result type {_name(given)} can't be cast to the desired output type {_name(kept)}")


def _name(dtype: torch.dtype) -> str:
    """What PyTorch calls a dtype in messages, such as ComplexFloat."""
    return torch.empty(0, dtype=dtype).type().removeprefix("torch.").removesuffix("Tensor")

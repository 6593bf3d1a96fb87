"""Where an operation may take a varying Python number, and within which bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from opwright.tracing.scalars.functions import Bounds

aten = torch.ops.aten

_LARGEST_HALF = 65504
_LARGEST_FLOAT32 = torch.finfo(torch.float32).max
_LAST_FLOAT = float(2**63 - 2**10)  # the last float64 that is an integer of 64 bits

_RANGES = (aten.linspace, aten.logspace)
_ROUNDED_PRODUCTS = (aten.addmv, aten.addr)  # whose factors torch converts to the dtype of the result
_COMPUTED_PRODUCTS = (aten.addmm, aten.addbmm, aten.baddbmm)  # whose factors it converts to the dtype it computes in
_FACTORS = ("beta", "alpha")

# Where torch raises if the dtype of the result does not hold a number, and the names of such arguments.
_CONVERTED: Mapping[Any, tuple[str, ...]] = {
    aten.full: ("fill_value",),
    aten.full_like: ("fill_value",),
    aten.new_full: ("fill_value",),
    aten.fill: ("value",),
    aten.masked_fill: ("value",),
    aten.index_fill: ("value",),
    aten.scatter: ("value",),
    aten.constant_pad_nd: ("value",),
    aten.threshold: ("value",),
    aten.clamp: ("min", "max"),
    aten.clamp_min: ("min",),
    aten.clamp_max: ("max",),
    aten.hardtanh: ("min_val", "max_val"),
    aten.hardshrink: ("lambd",),
    aten.add: ("alpha",),
    aten.sub: ("alpha",),
    aten.index_add: ("alpha",),
    **dict.fromkeys(_ROUNDED_PRODUCTS, _FACTORS),
    **dict.fromkeys(_RANGES, ("start", "end")),
    aten.logit: ("eps",),
    aten.pow: ("exponent",),
}

# Where torch raises if the dtype that it computes in does not hold a number: float32 for narrower ones.
_COMPUTED: Mapping[Any, tuple[str, ...]] = {
    **dict.fromkeys(_COMPUTED_PRODUCTS, _FACTORS),
    **dict.fromkeys((aten.addcmul, aten.addcdiv), ("value",)),
    aten.celu: ("alpha",),
    aten.elu: ("alpha", "scale", "input_scale"),
    aten.leaky_relu: ("negative_slope",),
    aten.lerp: ("weight",),
    aten.multi_margin_loss: ("margin",),
    aten.rrelu: ("lower", "upper"),
    aten.scalar_tensor: ("s",),
    aten.softplus: ("beta", "threshold"),
    aten.threshold: ("threshold",),
}

# Where torch truncates floats for integer tensors, while formulas would compute with the floats.
_TRUNCATED: Mapping[Any, tuple[str, ...]] = {
    **dict.fromkeys((*_ROUNDED_PRODUCTS, *_COMPUTED_PRODUCTS), _FACTORS),
    **dict.fromkeys(_RANGES, ("start", "end")),
    aten.threshold: ("threshold",),
}


def sizes_in(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[torch.SymInt]:
    """Symbolic integers that an operation takes as sizes, dimensions or indices, not as values."""
    for parameter, value in _given(func, args, kwargs):
        if "Tensor" not in str(parameter.type) and "number" not in str(parameter.type):
            yield from (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.SymInt))


def converted_in(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """Numbers that an operation converts to the dtype of its result before it computes; most compute in a wider one."""
    return _named(_CONVERTED.get(func.overloadpacket, ()), func, args, kwargs)


def computed_in(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """Numbers that an operation converts to the dtype that it computes in, often a wider one than that of results."""
    return _named(_COMPUTED.get(func.overloadpacket, ()), func, args, kwargs)


def truncates_in(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> bool:
    """Whether an integer operation gets a float that it truncates before it computes."""
    names = _TRUNCATED.get(func.overloadpacket, ())
    if not any(map(_is_float, _named(names, func, args, kwargs))):
        return False
    operands = [value for parameter, value in _given(func, args, kwargs) if parameter.name not in names]
    dtypes = _dtypes(operands) or _dtypes(result)  # a formula may have computed the result as floats
    return not any(dtype.is_floating_point or dtype.is_complex for dtype in dtypes)


def _is_float(number: Any) -> bool:
    """Whether a number, or the tensor of one, is not an integer."""
    if isinstance(number, torch.Tensor):
        return number.is_floating_point()
    return isinstance(number, (float, torch.SymFloat))


def _named(names: Sequence[str], func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    if names:  # the schema of most operations need not be read
        yield from (value for parameter, value in _given(func, args, kwargs) if parameter.name in names)


def _given(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Parameters, each with its argument."""
    parameters = func._schema.arguments
    yield from zip(parameters, args, strict=False)
    yield from ((parameter, kwargs[parameter.name]) for parameter in parameters if parameter.name in kwargs)


def integers_held_by(*values: Any) -> Bounds | None:
    """The integers that every tensor among some values can hold; None if those of 64 bits are.

    Beyond them torch raises in places, and wraps around in others.
    """
    held = [bounds for dtype in _dtypes(values) if (bounds := _held(dtype)) is not None]
    return Bounds(max(each.low for each in held), min(each.high for each in held)) if held else None


def floats_held_by(result: Any) -> Bounds | None:
    """The floats that become numbers of the dtype of a result; None if all that change from call to call do.

    Beyond them torch raises, except for an infinity or a NaN, which never change from call to call.
    """
    held = integers_held_by(result)
    if held is not None:
        return Bounds(float(held.low), float(held.high))
    return Bounds(-_LAST_FLOAT, _LAST_FLOAT) if torch.int64 in _dtypes(result) else None


def not_held_by(result: Any, value: Any, *, computed: bool = False) -> bool:
    """Whether a floating dtype is too narrow for a finite constant; integers wrap around in places.

    Args:
        result: The tensor with the dtype.
        value: The constant; anything else is held.
        computed: Whether it is the dtype that computes the result: float32 for narrower ones.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isinf(value):
        return False
    dtypes = [dtype for dtype in _dtypes(result) if dtype.is_floating_point or dtype.is_complex]
    least = _LARGEST_FLOAT32 if computed else 0.0
    return any(abs(value) > max(torch.finfo(dtype).max, least) for dtype in dtypes)


def _dtypes(values: Any) -> set[torch.dtype]:
    return {leaf.dtype for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)}


def _held(dtype: torch.dtype) -> Bounds | None:
    if dtype is torch.float16:
        return Bounds(-_LARGEST_HALF, _LARGEST_HALF)
    if dtype in (torch.int64, torch.bool) or dtype.is_floating_point or dtype.is_complex:
        return None
    limits = torch.iinfo(dtype)
    return Bounds(limits.min, limits.max)

"""Readers of the values of a kernel's parameters, made once for an instance because it is called often."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from opwright.errors import NoKernel
from opwright.handwritten.kernels.instance import DTYPES, Instance
from opwright.handwritten.kernels.roles import Constant, Contract, Elements, Measure, Role

Tensors = Mapping[str, torch.Tensor | None]
Reader = Callable[[Tensors, Mapping[str, Any], int], Any]
"""`(tensors by name, numbers by name, elements of the operator's first result) -> value`."""

_NUMBERS: Mapping[torch.dtype, Any] = {
    torch.float32: ctypes.c_float,
    torch.float64: ctypes.c_double,
    torch.uint8: ctypes.c_uint8,
    torch.int8: ctypes.c_int8,
    torch.int16: ctypes.c_int16,
    torch.int32: ctypes.c_int32,
    torch.int64: ctypes.c_int64,
    torch.bool: ctypes.c_bool,
}
_CTYPES: Mapping[str, Any] = {
    **{name: _NUMBERS[dtype] for name, dtype in DTYPES.items() if dtype in _NUMBERS},
    "size_t": ctypes.c_size_t,
    "Size": ctypes.c_int64,
}
_FLOATS = (ctypes.c_float, ctypes.c_double)


def kinds_of(contract: Contract, instance: Instance) -> list[Any]:
    """The ctypes types of an instance's parameters.

    Raises:
        NoKernel: If one is neither a pointer nor a number.
    """
    kinds = []
    for parameter in instance.declaration.parameters:
        kind = ctypes.c_void_p if parameter.is_pointer else _CTYPES.get(instance.type_of(parameter))
        if kind is None:
            raise NoKernel(
                f"{contract.function} takes '{parameter.name}' as {parameter.spelling}, which is not a number",
                place=instance.declaration.place,
                hint="declare it a pointer, or a number such as int64_t or double",
            )
        kinds.append(kind)
    return kinds


def reader(contract: Contract, role: Role, kind: Any, *, exact: bool) -> Reader:
    """The function that reads a parameter's value from a call.

    Args:
        contract: The kernel, for errors.
        role: The role of the parameter.
        kind: Its type.
        exact: Whether the kernel computes with numbers that a `float` does not hold.
    """
    match role:
        case Elements(name):
            return lambda tensors, constants, count: None if (t := tensors[name]) is None else t.data_ptr()
        case Constant(name):
            return lambda tensors, constants, count: _number(contract, constants.get(name), kind, name, exact=exact)
        case Measure("", _):
            return lambda tensors, constants, count: _fitting(contract, count, kind, "n")
        case Measure(name, "numel"):
            return lambda tensors, constants, count: _fitting(
                contract, 0 if (t := tensors[name]) is None else t.numel(), kind, name
            )
        case Measure(name, what, dimension):
            return lambda tensors, constants, count: _fitting(
                contract, _measured(contract, tensors[name], what, dimension, name), kind, name
            )


def _measured(contract: Contract, tensor: torch.Tensor | None, what: str, dimension: int, name: str) -> int:
    if tensor is None:
        return 0
    if dimension >= tensor.dim():
        raise NoKernel(
            f"{contract.function} asks for {what} {dimension} of '{name}', which has {tensor.dim()} dimensions",
            place=contract.place,
            hint=f"pass a tensor with more than {dimension} dimensions",
        )
    return tensor.size(dimension) if what == "size" else tensor.stride(dimension)


def _number(contract: Contract, value: Any, kind: Any, name: str, *, exact: bool) -> Any:
    """A number that was given, if the type of the parameter can hold it: an `int` holds neither 2³¹ nor 0.5.

    A `float` holds 0.1 as exactly as the tensors of a call in single precision hold anything.

    Raises:
        NoKernel: If it does not, or the value is no number.
    """
    is_float = kind in _FLOATS and isinstance(value, float)
    if isinstance(value, int):
        fits = _as(kind, value) == value
    elif is_float and kind is ctypes.c_float:
        held = kind(value).value
        fits = held == value or value != value or not (exact or math.isinf(held))
    else:
        fits = is_float
    if not fits:
        given = repr(value) if isinstance(value, (int, float)) else f"a {type(value).__name__}"
        raise NoKernel(
            f"{contract.function} declares '{name}' with a type that cannot hold {given}",
            place=contract.place,
            hint="declare it double, or int64_t; what these cannot hold is left to your function",
        )
    return value


def _as(kind: Any, value: int) -> Any:
    """What a type makes of an integer; None if nothing."""
    try:
        return kind(value).value
    except OverflowError:
        return None


def _fitting(contract: Contract, value: int, kind: Any, name: str) -> Any:
    """A size, a stride or a count, if the type of the parameter can hold it.

    Raises:
        NoKernel: If it does not.
    """
    if kind is not ctypes.c_int64 and kind not in _FLOATS and kind(value).value != value:
        raise NoKernel(
            f"{contract.function} takes '{name}' in {8 * ctypes.sizeof(kind)} bits, but it is {value}",
            place=contract.place,
            hint="declare it int64_t, which holds every size",
        )
    return value

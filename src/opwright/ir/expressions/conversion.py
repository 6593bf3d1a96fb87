"""Conversion between dtypes, of single numbers and of arrays, as torch converts.

NumPy has no bfloat16: an array of that dtype is one of float32 whose values bfloat16 can hold.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from opwright.ir.expressions.dtype import DType

Scalar = complex | float | int | bool
Array = npt.NDArray[Any]

_FORMATS = {DType.FLOAT16: "e", DType.FLOAT32: "f", DType.FLOAT64: "d"}
_BITS = {DType.UINT8: 8, DType.INT8: 8, DType.INT16: 16, DType.INT32: 32, DType.INT64: 64}


def convert_number(value: Scalar, dtype: DType) -> Scalar:
    """Convert a number: rounded to nearest even, integers wrapped around, the real part of a complex one.

    Raises:
        OverflowError, ValueError: If infinity or NaN is to become an integer.
    """
    if dtype is DType.BOOL:
        return bool(value)
    if dtype.is_complex:
        number = complex(value)
        return complex(_rounded(number.real, dtype.real), _rounded(number.imag, dtype.real))
    real = value.real
    return _rounded(float(real), dtype) if dtype.is_floating else _wrapped(int(real), dtype)


def shortest(value: float, dtype: DType) -> str:
    """The fewest digits that read back as the same number of a real dtype; always with a point or an exponent."""
    if dtype is DType.FLOAT64 or not math.isfinite(value):
        return repr(float(value))
    target = _rounded(value, dtype)
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if _rounded(float(text), dtype) == target:
            break
    return text if any(mark in text for mark in ".e") else f"{text}.0"


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype that holds a dtype."""
    return np.dtype("float32" if dtype is DType.BFLOAT16 else dtype.value)


def convert_array(array: Array, dtype: DType) -> Array:
    """Convert an array, element by element."""
    if dtype is DType.BOOL:
        return np.not_equal(array, 0)
    if array.dtype.kind == "c" and not dtype.is_complex:
        array = array.real
    if dtype.is_half:
        array = array.astype(np.float32)  # as torch does, also from float64
    return _to_bfloat16(array) if dtype is DType.BFLOAT16 else array.astype(numpy_dtype(dtype))


def _rounded(value: float, dtype: DType) -> float:
    if dtype is DType.BFLOAT16:
        return float(_to_bfloat16(np.asarray(_rounded(value, DType.FLOAT32), np.float32)))
    try:
        rounded: float = struct.unpack(_FORMATS[dtype], struct.pack(_FORMATS[dtype], value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _wrapped(value: int, dtype: DType) -> int:
    modulus = 1 << _BITS[dtype]
    low = 0 if dtype is DType.UINT8 else -modulus // 2
    return (value - low) % modulus + low


def _to_bfloat16(array: Array) -> Array:
    """Round float32 to the eight bits of a bfloat16, half to even; NaN stays NaN."""
    bits = array.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(array), array, np.asarray(rounded).view(np.float32)).astype(np.float32)

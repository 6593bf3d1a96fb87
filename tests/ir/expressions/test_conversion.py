"""Conversions of numbers and arrays, against torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from opwright.ir.expressions.conversion import convert_array, convert_number, numpy_dtype, shortest
from opwright.ir.expressions.dtype import DType

HALVES = [DType.BFLOAT16, DType.FLOAT16]
INTEGERS = [DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64]


def near_every_half(dtype: DType) -> torch.Tensor:
    """Every value of a half type as float32, what lies half way to the next, and the neighbours of both."""
    values = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(getattr(torch, dtype.value))
    bits = values.to(torch.float32).view(torch.int32)
    half_way = 2**15 if dtype is DType.BFLOAT16 else 2**12
    offsets = (0, 1, -1, half_way, half_way + 1, half_way - 1)
    return torch.cat([bits + offset for offset in offsets]).view(torch.float32)


@pytest.mark.parametrize("dtype", HALVES)
def test_arrays_are_rounded_as_torch_rounds(dtype: DType) -> None:
    x = near_every_half(dtype)
    expected = x.to(getattr(torch, dtype.value)).to(torch.float32).numpy()
    with np.errstate(over="ignore"):
        actual = convert_array(x.numpy(), dtype)
    assert actual.dtype == numpy_dtype(dtype)
    np.testing.assert_array_equal(actual.astype(np.float32), expected)


@pytest.mark.parametrize("dtype", HALVES)
def test_numbers_are_rounded_as_torch_rounds(dtype: DType) -> None:
    numbers = [*near_every_half(dtype)[::997].tolist(), 1e300, -1e300, 1 + 2**-8 + 2**-40]
    actual = [convert_number(number, dtype) for number in numbers]
    expected = torch.tensor(numbers, dtype=torch.float64).to(getattr(torch, dtype.value)).tolist()
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("source", [np.float32, np.float64, np.int64, np.complex64])
@pytest.mark.parametrize("dtype", list(DType))
def test_arrays_are_converted_as_torch_converts(dtype: DType, source: type) -> None:
    values: npt.NDArray[Any] = np.array([0, 1, 2, 3, 100, 127, 0.3, 7.7]).astype(source)
    actual = convert_array(values, dtype)
    expected = torch.from_numpy(values)
    expected = expected.real if expected.is_complex() and not dtype.is_complex and dtype is not DType.BOOL else expected
    converted = expected.to(getattr(torch, dtype.value))
    np.testing.assert_array_equal(actual, (converted.float() if dtype.is_half else converted).numpy())


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around(dtype: DType) -> None:
    numbers = [0, 1, -1, 127, 128, -129, 255, 256, 40_000, 2**31, 2**40 + 5, -(2**63)]
    expected = torch.tensor(numbers).to(getattr(torch, dtype.value)).tolist()
    assert [convert_number(number, dtype) for number in numbers] == expected


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_a_number_is_no_integer(value: float) -> None:
    with pytest.raises((OverflowError, ValueError)):
        convert_number(value, DType.INT32)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.FLOAT32, DType.FLOAT64])
@pytest.mark.parametrize("value", [0.1, 1.0, -0.0, 1e-30, 3.0000001, 1 / 3, math.inf, math.nan])
def test_the_shortest_text_reads_back(value: float, dtype: DType) -> None:
    rounded = convert_number(value, dtype)
    assert isinstance(rounded, float)
    text = shortest(rounded, dtype)
    np.testing.assert_equal(convert_number(float(text), dtype), rounded)
    assert len(text) <= len(repr(rounded))

"""What torch makes of two dtypes, kernels make too: every pair, also with numbers and tensors without dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from opwright.api.operator import Operator
from opwright.ir.expressions.dtype import DType
from opwright.settings import Settings
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from tests.suite.nights import mostly_at_night

DTYPES = tuple(getattr(torch, dtype.value) for dtype in DType)
OPERATIONS: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.add,
    "mul": torch.mul,
    "div": torch.div,
    "where": lambda x, y: torch.where(x == x, x, y),
    "equal": torch.eq,
}
NUMBERS = (True, 3, 0.3, 2 - 1j)
# Whole numbers, so that half types agree whatever they are rounded in, and integers wrap around.
VALUES = torch.tensor([0, 1, 2, 3, 5, 100, 127, 64])


def tensors(shape: tuple[int, ...]) -> list[torch.Tensor]:
    return [(VALUES if shape else VALUES[4]).reshape(shape).to(dtype) for dtype in DTYPES]


def _is_held(dtype: torch.dtype) -> bool:
    """Torch has little for complex numbers made of halves, and kernels nothing."""
    return not dtype.is_complex or dtype.itemsize > 4


def every_pair_with(numbers: tuple[complex, ...]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Every operation of a tensor with the tensors of every dtype and with numbers."""

    def every_pair(x: torch.Tensor, *others: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(operation(x, other) for operation in OPERATIONS.values() for other in (*others, *numbers))

    return every_pair


PAIRS = [*((dtype, ()) for dtype in DTYPES), *((dtype, (8,)) for dtype in DTYPES)]
BY_DAY = [
    *((dtype, ()) for dtype in (torch.bfloat16, torch.complex64, torch.int64)),
    *((dtype, (8,)) for dtype in (torch.uint8,)),
]


@pytest.mark.parametrize(("dtype", "shape"), mostly_at_night(PAIRS, BY_DAY), ids=str)
def test_pairs(dtype: torch.dtype, shape: tuple[int, ...], settings_quick_by_day: Settings) -> None:
    """The first of a pair always has dimensions; where the second has none, its dtype counts less."""
    others = [other for other in tensors(shape) if _is_held(torch.result_type(VALUES.to(dtype), other))]
    given = [VALUES.to(dtype), *others]
    numbers = tuple(number for number in NUMBERS if _is_held(torch.result_type(given[0], number)))
    function = every_pair_with(numbers)
    expected = function(*given)
    names = [f"x{position}" for position in range(len(given))]
    signature = Signature(tuple(Parameter(name, Kind.TENSOR, False) for name in names), len(expected))
    operator = Operator(function, name="every_pair", signature=signature, settings=settings_quick_by_day)
    actual = operator(*given)
    assert operator.last_rung == "cpp"
    labels = [(name, other) for name in OPERATIONS for other in (*(other.dtype for other in others), *numbers)]
    wrong: list[Any] = []
    for label, mine, theirs in zip(labels, actual, expected, strict=True):
        same = mine.dtype is theirs.dtype and torch.allclose(mine, theirs, rtol=2e-6, atol=0, equal_nan=True)
        half = mine.dtype is theirs.dtype and mine.dtype.itemsize == 2 and mine.dtype.is_floating_point
        if not same and not (half and torch.allclose(mine, theirs, rtol=torch.finfo(mine.dtype).eps, equal_nan=True)):
            wrong.append((*label, mine, theirs))
    assert not wrong, wrong[:4]

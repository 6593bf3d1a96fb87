"""Python values that `==` holds for equal, or for different from themselves."""

import itertools
import math

import pytest

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.exact import exact
from opwright.ir.expressions.expression import Literal

DIFFERENT = [0, 0.0, -0.0, False, 1, 1.0, True, 1 + 0j, 0j, -0j, math.nan, -math.nan, 2**53 + 1, float(2**53 + 1), None]


@pytest.mark.parametrize(("left", "right"), list(itertools.combinations(DIFFERENT, 2)))
def test_different_values_have_different_keys(left, right):
    assert exact(left) != exact(right)


@pytest.mark.parametrize("value", DIFFERENT)
def test_a_value_has_one_key(value):
    again = value * 1.0 if isinstance(value, float) else value
    assert exact(value) == exact(again)
    assert hash(exact(value)) == hash(exact(again))


def test_literals_are_told_apart_by_their_bits():
    zeros = {Literal(0.0, DType.FLOAT32), Literal(-0.0, DType.FLOAT32), Literal(-0.0, DType.FLOAT64)}
    assert len(zeros) == 3
    assert Literal(-0.0, DType.FLOAT32) in zeros
    assert Literal(math.nan, DType.FLOAT32) == Literal(float("nan"), DType.FLOAT32)
    assert Literal(0.0, DType.FLOAT32) != 0.0

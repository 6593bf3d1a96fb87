"""Which sizes a reshape splits, and the indices along their factors."""

from __future__ import annotations

import itertools

import pytest

from opwright.ir.expressions.integer import ONE, Integer, evaluate, integer, symbol
from opwright.passes.buffers.memory import flat
from opwright.passes.loops.factors import digits, expanded, factors

N, C, H, W = (symbol(name) for name in "nchw")
K = C // 8
EIGHT = integer(8)
Shape = tuple[Integer, ...]

CASES: dict[str, tuple[Shape, Shape, dict[Integer, Shape] | None]] = {
    "groups of channels": ((N, C, H, W), (N, EIGHT, K, H * W), {C: (EIGHT, K), H * W: (H, W)}),
    "the other way": ((N, EIGHT, K, H * W), (N, C, H, W), {C: (EIGHT, K), H * W: (H, W)}),
    "one dimension of everything": ((N, H, W), (N * H * W,), {N * H * W: (N, H, W)}),
    "what is left over": ((C,), (EIGHT, K), {C: (EIGHT, K)}),
    "sizes of one are nothing": ((N, ONE, C), (N, C, ONE), {}),
    "several become several": ((EIGHT, K, N), (K, C), None),
    "numbers": ((integer(6), N), (integer(2), integer(3), N), {integer(6): (integer(2), integer(3))}),
    "a size that may be zero proves nothing": ((symbol("z"), C), (symbol("z"), EIGHT, K), None),
}


@pytest.mark.parametrize("name", CASES)
def test_factors(name: str) -> None:
    left, right, expected = CASES[name]
    found = factors(left, right, {"n", "c", "h", "w"})
    assert (None if found is None else dict(found)) == expected


def test_factors_of_factors() -> None:
    splits = {C: (EIGHT, K), K: (H, W)}
    assert expanded(C, splits) == (EIGHT, H, W)
    assert expanded(N, splits) == (N,)


def test_digits_are_the_indices_that_make_an_index() -> None:
    sizes = (EIGHT, K, H)
    i, j, k = symbol("i"), symbol("j"), symbol("k")
    extents = {"i": EIGHT, "j": K, "k": H, "one": ONE}
    whole = flat((i, j, k), sizes)
    assert digits(whole, sizes, extents) == (i, j, k)
    assert digits(whole + symbol("one"), sizes, extents) == (i, j, k)
    assert digits(flat((i, integer(0), k), sizes), sizes, extents) == (i, integer(0), k)
    numbers = {"c": 24, "h": 5}
    seen = {
        evaluate(whole, {**numbers, "i": a, "j": b, "k": c})
        for a, b, c in itertools.product(range(8), range(3), range(5))
    }
    assert seen == set(range(8 * 3 * 5))


@pytest.mark.parametrize("index", [symbol("i") * H + 1, symbol("i"), symbol("k") * H + symbol("j"), integer(3)])
def test_other_indices_have_no_digits(index: Integer) -> None:
    extents = {"i": EIGHT, "j": K, "k": C}
    assert digits(index, (EIGHT, H), extents) is None


def test_an_index_of_a_whole_dimension_stays() -> None:
    assert digits(symbol("i") + 3, (C,), {"i": C}) == (symbol("i") + 3,)

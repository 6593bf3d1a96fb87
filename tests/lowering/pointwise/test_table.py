"""Every row of the table of element-wise operations, compiled, against eager: results and gradients, special values."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from opwright.lowering.pointwise.promotion import program_dtype
from opwright.lowering.pointwise.table import POINTWISE
from tests.lowering.batch import Function, Results, arity, compiled, run_compiled, run_eager
from tests.lowering.samples import INTEGER_SAMPLES, POINTWISE_SAMPLES
from tests.quiet_settings import quiet_settings

aten = torch.ops.aten

REALS = (
    *(0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 0.1, 7.25, 88.5, 1e-30, 1e30, float("inf"), float("nan")),
    *(-0.0, -0.5, -1.0, -2.5, -0.1, -7.25, -88.5, -1e-30, -1e30, float("-inf")),
)
INTEGERS = (0, 1, -1, 2, -2, 3, -7, 100, -100, 2**20, -(2**20))
SMALL_INTEGERS = (0, 1, -1, 2, -2, 3, -7, 100, -100, 127, -128)
VALUES = {
    torch.bfloat16: REALS,
    torch.float16: REALS,
    torch.float32: REALS,
    torch.float64: REALS,
    torch.uint8: (0, 1, 2, 3, 7, 100, 127, 128, 200, 255),
    torch.int8: SMALL_INTEGERS,
    torch.int16: (*SMALL_INTEGERS, 2**15 - 1, -(2**15)),
    torch.int32: (*INTEGERS, 2**31 - 1, -(2**31)),
    torch.int64: INTEGERS,
    torch.bool: (False, True),
}
# Where torch's own decomposition of the derivative chooses the other branch for NaN than eager does.
DECOMPOSED_OTHERWISE_AT_NAN = {aten.hardtanh, aten.elu}
LAYOUTS = ("row-major", "transposed")
_IN_ONE_OPERATOR = 18  # torch takes 64 arguments: two operands and a cotangent for each
# Dtypes, whether kernels are optimized, layouts, and which of their operators run by day. At night all are optimized.
# Most of the functions that have loops of their own are in the operators 2 and 3.
BY_DAY = {
    (torch.float32, False, "row-major"): (0, 1, 3, 4),
    (torch.float32, False, "transposed"): (2,),
    (torch.float32, True, "row-major"): (2,),
    (torch.bfloat16, False, "row-major"): (0,),
    (torch.bfloat16, False, "transposed"): (3,),
    (torch.uint8, False, "row-major"): range(5),
    (torch.int64, False, "row-major"): range(5),
    (torch.int64, False, "transposed"): (0,),
    (torch.bool, False, "row-major"): range(5),
}

_ULPS = {torch.bfloat16: 1, torch.float16: 1, torch.float32: 6, torch.float64: 6}
_NO_SUCH_OPERATION = re.compile("not implemented for|not supported|on an unsigned type with negative limits")


def operands(dtype: torch.dtype, layout: str) -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of values."""
    values = torch.tensor(VALUES[dtype], dtype=dtype)
    x, y = (grid.contiguous() for grid in torch.meshgrid(values, values, indexing="ij"))
    if layout == "transposed":
        x, y = x.mT.contiguous().mT, y
    return x.requires_grad_(dtype.is_floating_point), y.requires_grad_(dtype.is_floating_point)


@functools.cache
def rows(dtype: torch.dtype) -> dict[Any, Function]:
    """The rows that are right for a dtype, where eager has the operation."""
    return {
        packet: call
        for packet, call in (POINTWISE_SAMPLES | ({} if dtype.is_floating_point else INTEGER_SAMPLES)).items()
        if POINTWISE[packet].computes_in(program_dtype(dtype)) and _takes(call, dtype)
        if dtype.is_floating_point or packet is not aten.square  # torch writes it as pow, which stays torch's
    }


def _takes(call: Function, dtype: torch.dtype) -> bool:
    try:
        call(*[torch.ones(2, dtype=dtype)] * arity(call))
    except RuntimeError as refusal:
        if not _NO_SUCH_OPERATION.search(str(refusal)):
            raise
        return False
    return True


def _cases() -> Iterator[Any]:
    for manner in itertools.product(VALUES, (False, True), LAYOUTS):
        dtype, optimized, _ = manner
        for place, packet in enumerate(rows(dtype)):
            if place // _IN_ONE_OPERATOR in BY_DAY.get(manner, ()):
                yield pytest.param(packet, *manner)
            elif optimized:
                yield pytest.param(packet, *manner, marks=pytest.mark.nightly)


class Compiled:
    """The results of all rows, a few operators at a time, made when they are first asked for."""

    def __init__(self) -> None:
        self._results: dict[Any, Results] = {}

    def results(self, packet: Any, dtype: torch.dtype, optimized: bool, layout: str) -> Results:
        if (packet, dtype, optimized, layout) not in self._results:
            self._run(packet, dtype, optimized, layout)
        return self._results[packet, dtype, optimized, layout]

    def _run(self, packet: Any, dtype: torch.dtype, optimized: bool, layout: str) -> None:
        everything = list(rows(dtype))
        begin = everything.index(packet) // _IN_ONE_OPERATOR * _IN_ONE_OPERATOR
        chosen = {key: rows(dtype)[key] for key in everything[begin : begin + _IN_ONE_OPERATOR]}
        name = f"rows_{begin}_{str(dtype).removeprefix('torch.')}_{optimized:d}"
        operator = compiled(name, chosen, quiet_settings(optimized=optimized))
        made = run_compiled(operator, chosen, operands(dtype, layout))
        assert operator.last_rung == "cpp"
        self._results.update({(key, dtype, optimized, layout): result for key, result in made.items()})


@pytest.fixture(scope="module")
def compiled_rows() -> Compiled:
    return Compiled()


def wrong_places(actual: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, scale: torch.Tensor) -> list[int]:
    """Where a result is neither eager's nor about as near to the exact one; NaN equals NaN."""
    actual, eager, exact, scale = (tensor.flatten().double() for tensor in (actual, eager, exact, scale))
    same = (actual == eager) | (actual == exact) | (actual.isnan() & eager.isnan())
    near = (actual - exact).abs() <= 2 * (eager - exact).abs().nan_to_num(0, 0, 0) + scale
    return torch.nonzero(~(same | near)).flatten().tolist()


def roundings(exact: torch.Tensor, dtype: torch.dtype, around: torch.Tensor | float = 0.0) -> torch.Tensor:
    """A few units in the last place of a result, or of what it is a difference of."""
    if not dtype.is_floating_point:
        return torch.zeros(exact.shape)
    limits = torch.finfo(dtype)
    return _ULPS[dtype] * limits.eps * (exact.double().abs() + around) + limits.tiny


def exactly(operands: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(
        (o.detach().double() if o.is_floating_point() else o.detach()).requires_grad_(o.requires_grad) for o in operands
    )


def show(places: list[int], *tensors: torch.Tensor) -> list[tuple[float, ...]]:
    return [tuple(tensor.flatten()[place].item() for tensor in tensors) for place in places[:6]]


@pytest.mark.parametrize(
    ("packet", "dtype", "optimized", "layout"),
    [*_cases()],
    ids=lambda value: str(value).removeprefix("aten.").removeprefix("torch."),
)
def test_row(packet: Any, dtype: torch.dtype, optimized: bool, layout: str, compiled_rows: Compiled) -> None:
    call, given = rows(dtype)[packet], operands(dtype, layout)
    actual = compiled_rows.results(packet, dtype, optimized, layout)
    eager, exact = run_eager(call, given), run_eager(call, exactly(given))
    assert actual.output.dtype is eager.output.dtype
    wrong = wrong_places(actual.output, eager.output, exact.output, roundings(exact.output, eager.output.dtype))
    assert not wrong, show(wrong, *given, actual.output, eager.output)
    for mine, theirs, true in zip(actual.gradients, eager.gradients, exact.gradients, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is None or theirs is None or true is None:
            continue
        if packet in DECOMPOSED_OTHERWISE_AT_NAN:
            mine = torch.where(given[0].isnan(), theirs, mine)
        wrong = wrong_places(mine, theirs, true, roundings(true, dtype, around=2.0))
        assert not wrong, show(wrong, *given, mine, theirs)


def test_every_row_has_a_sample() -> None:
    assert POINTWISE_SAMPLES.keys() == POINTWISE.keys()


@pytest.mark.parametrize("wrong", [1.00001, -1.0, float("nan"), float("inf")])
def test_comparison_notices_a_wrong_value(wrong: float) -> None:
    right = torch.tensor([1.0])
    assert wrong_places(torch.tensor([wrong]), right, right, roundings(right, torch.float32)) == [0]

"""Reductions: what they mean, and how they are printed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Cast, Load, Local, apply
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import ZERO
from opwright.ir.expressions.reductions import REDUCERS
from opwright.ir.meaning.interpreter import interpret
from opwright.ir.printer import print_program
from opwright.ir.program import Buffer, Kernel, Program, Reduce, Store
from opwright.ir.verifier import verify
from tests.ir.programs import F32, I0, I1, matrix, over, summed

x = np.array([[1.5, -2.0, np.nan], [3.0, 0.25, -1.0]], np.float32)


def reduced(function: str, dtype: DType = F32) -> Program:
    program = summed()
    element = Load("x", (I0, I1), F32)
    reduction = Reduce("total", function, element if dtype is F32 else Cast(element, dtype))
    target = Buffer("sums", dtype, (program.inputs[0].shape[0],))
    store = Store("sums", (I0,), Local("total", dtype))
    return replace(program, steps=(replace(program.steps[0], targets=(target,), lets=(reduction,), stores=(store,)),))


@pytest.mark.parametrize("function", ["sum", "product", "maximum", "minimum"])
def test_a_reduce_repeats_its_scalar_function(function: str) -> None:
    program = reduced(function)
    verify(program)
    (found,) = interpret(program, [x])
    step = FUNCTIONS[REDUCERS[function].combine].meaning
    expected = [step(step(row[0], row[1]), row[2]) for row in x]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("function", ["any", "all"])
def test_truth_reductions(function: str) -> None:
    program = reduced(function, DType.BOOL)
    verify(program)
    given = np.array([[0, 0, 0], [0, 2, 0], [1, 1, 1]], np.float32)
    (found,) = interpret(program, [given])
    assert found.tolist() == ([False, True, True] if function == "any" else [False, False, True])


def test_every_reduce_is_tested() -> None:
    assert set(REDUCERS) == {"sum", "product", "maximum", "minimum", "any", "all"}


def test_a_long_sum_is_rounded_once() -> None:
    values = np.full((1, 100_000), 0.1, np.float32)
    (found,) = interpret(summed(), [values])
    assert found[0] == np.float32(values.astype(np.float64).sum())


def test_a_reduction_is_a_value_of_every_point_of_its_row() -> None:
    program = summed()
    (total,) = program.steps[0].lets
    share = Buffer("share", F32, program.inputs[0].shape)
    value = apply("divide", total.value, Local("total", F32))
    kernel = Kernel("share", (share,), program.steps[0].axes, (total,), (Store("share", (I0, I1), value),), row_axes=1)
    shared = replace(program, steps=(kernel,), outputs=("share",))
    verify(shared)
    (found,) = interpret(shared, [x])
    np.testing.assert_allclose(found, x / x.sum(1, keepdims=True), rtol=1e-6)


def test_a_reducing_store_reductions_over_what_its_indices_leave_out() -> None:
    given = matrix("x")
    sums = Buffer("sums", F32, (given.shape[1],))
    kept = Buffer("kept", F32, (Load("x", (ZERO,), F32).indices[0] + 1, given.shape[1]))
    stores = (
        Store("sums", (I1,), Load("x", (I0, I1), F32), reduction="sum"),
        Store("kept", (ZERO, I1), Load("x", (I0, I1), F32), reduction="maximum"),
    )
    kernel = Kernel("columns", (sums, kept), over(*given.shape), (), stores)
    program = Program("columns", (given,), (), (kernel,), ("sums", "kept"), ())
    verify(program)
    totals, largest = interpret(program, [x])
    np.testing.assert_allclose(totals, x.sum(0))
    np.testing.assert_allclose(largest, x.max(0, keepdims=True))


def test_printing() -> None:
    assert print_program(summed()).splitlines()[1:] == [
        "  kernel sums over i0 < x_size_0, i1 < x_size_1, rows of i1",
        "    new sums: float32[x_size_0]",
        "    reduce total = sum of x[i0, i1]",
        "    sums[i0] = total",
    ]

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from opwright.errors import InternalError
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Cast, Literal, Load, Local, apply
from opwright.ir.expressions.integer import Condition, integer, symbol
from opwright.ir.program import (
    Axis,
    Buffer,
    Check,
    Gather,
    Iota,
    Kernel,
    Let,
    ListOperand,
    OptionalOperand,
    Program,
    Reduce,
    SizeOperand,
    Step,
    Store,
    TensorOperand,
    size_symbol,
)
from opwright.ir.verifier import CHECKS, verify
from tests.ir.programs import F32, I0, I1, gated, joined, matrix, over, summed, with_case

LEFT, RIGHT, GATE, MIXED = range(4)  # the steps of the program with every kind of step

stored = Store("gate", (I0, I1), Local("opening", F32))
half = Literal(0.5, F32)
x_element = Load("x", (I0, I1), F32)
n = symbol("n")


def with_step(position: int, **changes: Any) -> Program:
    """The good program with a part of one step replaced."""
    program = gated()
    steps = list(program.steps)
    steps[position] = replace(steps[position], **changes)
    return replace(program, steps=tuple(steps))


def storing(value: Any) -> Program:
    return with_step(GATE, stores=(replace(stored, value=value),))


def letting(*values: Any) -> Program:
    """The good program with these lets, all named `opening`."""
    return with_step(GATE, lets=tuple(Let("opening", value) for value in values))


def reducing(*lets: Any, **changes: Any) -> Program:
    """The sum of rows with these lets."""
    program = summed()
    kernel = replace(program.steps[0], lets=lets or program.steps[0].lets, **changes)
    return replace(program, steps=(kernel,))


def with_last(step: Step) -> Program:
    program = gated()
    return replace(program, steps=(*program.steps, step))


looked_up = Let("row", Load("table", (symbol("id"), I1), F32))
gathered = Gather("id", Load("ids", (I0,), DType.INT64), size_symbol("table", 0), from_end=False)


def looking_up(*, checked: str = "ids", gathered: Gather = gathered, lets: Any = None, steps: Any = None) -> Program:
    """A table's rows at indices, twice as large."""
    table, ids = matrix("table"), Buffer("ids", DType.INT64, (size_symbol("ids", 0),))
    rows = Buffer("rows", F32, (ids.shape[0], table.shape[1]))
    at = (symbol("d0"), symbol("d0")) if checked == "table" else (symbol("d0"),)
    check = Check(checked, ids.shape, at, integer(0), table.shape[0])
    store = Store("rows", (I0, I1), apply("add", Local("row", F32), Local("row", F32)))
    kernel = Kernel("rows", (rows,), over(*rows.shape), lets or (gathered, looked_up), (store,))
    return Program("looking_up", (table, ids), (), steps or (check, kernel), ("rows",), ())


FAULTS: dict[str, tuple[str, Program]] = {
    "two inputs": ("buffers_are_declared_once", replace(joined(), inputs=(*joined().inputs, joined().inputs[0]))),
    "a target twice": ("buffers_are_declared_once", with_last(gated().steps[LEFT])),
    "a view too early": (
        "buffers_are_declared_before_use",
        replace(gated(), steps=(gated().steps[GATE], *gated().steps[:GATE], gated().steps[MIXED])),
    ),
    "a load of nothing": ("buffers_are_declared_before_use", storing(Load("nothing", (I0,), F32))),
    "a view of nothing": ("buffers_are_declared_before_use", with_step(LEFT, source="nothing")),
    "a call with nothing": (
        "buffers_are_declared_before_use",
        with_step(MIXED, operands=(ListOperand((TensorOperand("nothing"),)),)),
    ),
    "a store to an input": (
        "stores_go_to_kernel_buffers",
        with_last(Kernel("x", (), (), (), (Store("x", (integer(0), integer(0)), half),))),
    ),
    "a store to a result": (
        "stores_go_to_kernel_buffers",
        with_last(Kernel("x", (), (), (), (Store("mixed", (integer(0), integer(0)), half),))),
    ),
    "a store before its kernel": (
        "stores_go_to_kernel_buffers",
        replace(joined(), steps=(joined().steps[1], joined().steps[0])),
    ),
    "a target without a store": (
        "targets_are_stored",
        with_step(GATE, targets=(*gated().steps[GATE].targets, Buffer("other", F32, ()))),
    ),
    "an output of nothing": ("outputs_exist", replace(gated(), outputs=("nothing",))),
    "a load with an index less": ("indices_match_rank", storing(Load("x", (I0,), F32))),
    "a store with an index more": (
        "indices_match_rank",
        with_step(GATE, stores=(replace(stored, indices=(I0, I1, I1)),)),
    ),
    "a view with an index less": ("indices_match_rank", with_step(LEFT, indices=(symbol("d0"),))),
    "an axis of nowhere in a load": ("indices_are_bound", storing(Load("x", (I0, symbol("i2")), F32))),
    "an axis of nowhere in a store": (
        "indices_are_bound",
        with_step(GATE, stores=(replace(stored, indices=(I0, symbol("d1"))),)),
    ),
    "an axis of a kernel in a view": ("indices_are_bound", with_step(LEFT, indices=(I0, I1))),
    "a size of nowhere in an index": ("indices_are_bound", storing(Load("x", (I0, n * I1), F32))),
    "a size of nowhere in an input": (
        "sizes_are_bound",
        replace(gated(), inputs=(*gated().inputs, Buffer("more", F32, (n,)))),
    ),
    "a size of nowhere in a target": (
        "sizes_are_bound",
        with_step(MIXED, targets=(Buffer("mixed", F32, (n, integer(1))),)),
    ),
    "a size of nowhere in an extent": ("sizes_are_bound", with_step(GATE, axes=(Axis("i0", n), Axis("i1", n // 2)))),
    "a size of nowhere in a call": (
        "sizes_are_bound",
        with_step(MIXED, operands=(TensorOperand("x"), OptionalOperand(ListOperand((SizeOperand(n),))))),
    ),
    "a size of nowhere in a guard": ("guards_are_bound", replace(gated(), guards=(Condition(">", n, integer(0)),))),
    "an axis in a guard": ("guards_are_bound", replace(gated(), guards=(Condition(">", I0, integer(0)),))),
    "an axis twice": (
        "axes_are_unique",
        with_step(GATE, axes=(*gated().steps[GATE].axes, Axis("i0", integer(2)))),
    ),
    "an axis called like a size": (
        "axes_are_unique",
        with_step(GATE, axes=(*gated().steps[GATE].axes, Axis("columns", integer(2)))),
    ),
    "a local of nowhere": ("locals_are_bound_once_before_use", storing(Local("nothing", F32))),
    "a local of another dtype": (
        "locals_are_bound_once_before_use",
        storing(Cast(Local("opening", DType.INT64), F32)),
    ),
    "a reduction of nowhere": (
        "reductions_follow_the_table",
        reducing(Reduce("total", "median", x_element)),
    ),
    "a truth of numbers": ("reductions_follow_the_table", reducing(Reduce("total", "any", x_element))),
    "a reduction without a row": ("reductions_follow_the_table", reducing(row_axes=0)),
    "a reducing store of nowhere": (
        "reductions_follow_the_table",
        with_step(GATE, stores=(replace(stored, reduction="median"),)),
    ),
    "a value of a point for a row": (
        "what_is_stored_once_is_one_value",
        reducing(stores=(Store("sums", (I0,), x_element),)),
    ),
    "a range of reals": (
        "iotas_have_no_memory",
        with_last(Iota(Buffer("counted", F32, (integer(3),)))),
    ),
    "a range of two dimensions": (
        "iotas_have_no_memory",
        with_last(Iota(Buffer("counted", DType.INT64, (integer(3), integer(3))))),
    ),
    "a range as an output": (
        "iotas_have_no_memory",
        replace(with_last(Iota(Buffer("counted", DType.INT64, (integer(3),)))), outputs=("counted",)),
    ),
    "a local twice": ("locals_are_bound_once_before_use", letting(half, half)),
    "a local in its own let": ("locals_are_bound_once_before_use", letting(Local("opening", F32))),
    "a function of nowhere": ("functions_follow_the_table", storing(Apply("gamma", (half,), F32))),
    "an operand less": ("functions_follow_the_table", storing(Apply("add", (half,), F32))),
    "operands of two dtypes": (
        "functions_follow_the_table",
        storing(Apply("add", (Literal(1, DType.INT64), half), F32)),
    ),
    "a where that chooses by a number": (
        "functions_follow_the_table",
        storing(Apply("where", (half, half, half), F32)),
    ),
    "a where of two dtypes": (
        "functions_follow_the_table",
        storing(Apply("where", (Literal(True, DType.BOOL), Literal(1, DType.INT64), half), F32)),
    ),
    "a comparison that gives a number": ("functions_follow_the_table", storing(Apply("less", (half, half), F32))),
    "a sum that gives another dtype": (
        "functions_follow_the_table",
        storing(Cast(Apply("add", (half, half), DType.FLOAT64), F32)),
    ),
    "a fault deep inside": (
        "functions_follow_the_table",
        letting(apply("tanh", Cast(Apply("tanh", (half, half), DType.FLOAT64), F32))),
    ),
    "arithmetic in half": (
        "functions_follow_the_table",
        storing(Cast(apply("tanh", Cast(x_element, DType.BFLOAT16)), F32)),
    ),
    "half converted at once": (
        "half_is_converted_by_float32",
        storing(Cast(Cast(Cast(x_element, DType.FLOAT16), DType.FLOAT64), F32)),
    ),
    "a load of another dtype": (
        "loads_have_the_dtype_of_their_buffer",
        storing(Cast(replace(x_element, dtype=DType.FLOAT64), F32)),
    ),
    "a store of another dtype": ("stores_have_the_dtype_of_their_buffer", storing(Cast(x_element, DType.FLOAT64))),
    "an index too early": ("indices_are_gathered_before_use", looking_up(lets=(looked_up, gathered))),
    "an index twice": ("indices_are_gathered_before_use", looking_up(lets=(gathered, gathered, looked_up))),
    "an index from real numbers": (
        "indices_are_gathered_before_use",
        looking_up(gathered=replace(gathered, value=Load("table", (I0, I1), F32)), checked="table"),
    ),
    "an index without a check": ("gathers_are_checked", looking_up(steps=looking_up().steps[1:])),
    "an index from the end, checked from zero": (
        "gathers_are_checked",
        looking_up(gathered=replace(gathered, from_end=True)),
    ),
    "a load of what is stored": ("kernels_do_not_read_what_they_write", storing(Load("gate", (I1, I0), F32))),
}


@pytest.mark.parametrize("good", [gated, joined, with_case, looking_up])
def test_good_program_passes(good: Callable[[], Program]) -> None:
    verify(good())


@pytest.mark.parametrize(("check", "faulty"), FAULTS.values(), ids=FAULTS)
def test_fault_is_caught_by_its_check_alone(check: str, faulty: Program) -> None:
    assert {found.__name__ for found in CHECKS if list(found(faulty))} == {check}


def test_every_check_has_a_fault() -> None:
    assert {check.__name__ for check in CHECKS} == {check for check, _ in FAULTS.values()}


def test_a_view_does_not_hide_what_is_stored() -> None:
    program = joined()
    whole = program.steps[0].targets[0]
    view = replace(gated().steps[LEFT], target=replace(whole, name="seen"), source="whole")
    again = replace(program.steps[1], stores=(Store("whole", (I0, I1), Load("seen", (I1, I0), F32)),))
    with pytest.raises(InternalError, match="seen is read where it is written"):
        verify(replace(program, steps=(*program.steps, view, again)))


def test_a_fault_in_a_case_is_found() -> None:
    good = with_case()
    with pytest.raises(InternalError, match="outputs_exist"):
        verify(replace(good, cases=(replace(good.cases[0], steps=()),)))


def test_message_names_program_check_step_and_line() -> None:
    with pytest.raises(InternalError) as refusal:
        verify(storing(apply("add", Load("x", (I0,), F32), half)))
    assert (
        str(refusal.value)
        == """\
program gated is malformed
indices_match_rank: x has rank 2 and gets 1 indices
  kernel gate over i0 < x_size_0, i1 < columns
    gate[i0, i1] = x[i0] + 0.5"""
    )


def test_message_has_all_findings() -> None:
    with pytest.raises(InternalError) as refusal:
        verify(replace(gated(), outputs=("nothing",), guards=(Condition(">", n, integer(0)),)))
    assert str(refusal.value).splitlines()[1:] == [
        "outputs_exist: output nothing does not exist",
        "guards_are_bound: n, in guard n > 0, is not bound",
    ]

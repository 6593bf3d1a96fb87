"""Kernels in torch operations against the interpreter: functions, literals, dtypes, precedence, views."""

from __future__ import annotations

import ast

import numpy as np
import pytest
import torch

from opwright.codegen.python.body import spell_body
from opwright.codegen.python.line_breaks import reduce_assignment
from opwright.codegen.python.values.calls import spell_call
from opwright.codegen.python.values.templates import TEMPLATES
from opwright.errors import InternalError, NoKernel
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Cast, Expression, Literal, Load, apply
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import ONE, ZERO, integer, symbol
from opwright.ir.meaning.interpreter import interpret
from opwright.ir.program import (
    Axis,
    Buffer,
    Call,
    Kernel,
    Program,
    Store,
    TensorOperand,
    View,
    size_symbol,
    view_axes,
)
from opwright.ir.verifier import verify
from opwright.lowering.calls import call_of

F32, F64, C128, I64, BOOL = DType.FLOAT32, DType.FLOAT64, DType.COMPLEX128, DType.INT64, DType.BOOL
ROWS, COLUMNS = size_symbol("x", 0), size_symbol("x", 1)
I0, I1 = symbol("i0"), symbol("i1")
BELOW_ONE = ("acos", "asin", "atanh", "erf", "erfc")


def run(program, *arrays):
    """What the emitted assignments compute, after the interpreter said what they must."""
    verify(program)
    expected = interpret(program, arrays)
    body = spell_body(program, {buffer.name: buffer.name for buffer in program.inputs}, own_outputs=True)
    values = {buffer.name: torch.from_numpy(array) for buffer, array in zip(program.inputs, arrays, strict=True)}
    for statement in (*body.sizes, *body.statements):
        exec(f"{', '.join(statement.names)} = {statement.value}", {"torch": torch}, values)
    found = [values[name].resolve_conj().resolve_neg().numpy() for name in body.outputs]
    for left, right in zip(found, expected, strict=True):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(left, right, rtol=1e-5 if left.dtype == np.float32 else 1e-12)
    return body


def elementwise(value: Expression, *dtypes: DType) -> Program:
    """y[i0, i1] = value, of inputs x, y, z with these dtypes and one shape."""
    inputs = tuple(
        Buffer(name, dtype, (size_symbol(name, 0), size_symbol(name, 1)))
        for name, dtype in zip("xyz", dtypes, strict=False)
    )
    target = Buffer("result", value.dtype, (ROWS, COLUMNS))
    axes = (Axis("i0", ROWS), Axis("i1", COLUMNS))
    kernel = Kernel("result", (target,), axes, (), (Store("result", (I0, I1), value),))
    return Program("case", inputs, (), (kernel,), ("result",), ())


def at(name: str, dtype: DType = F32) -> Load:
    return Load(name, (I0, I1), dtype)


def array(dtype: DType, seed: int, low: float = -2.0, high: float = 2.0):
    values = np.random.default_rng(seed).uniform(low, high, (3, 4))
    values = values + 1j * values[::-1] if dtype.is_complex else values
    return values > 0 if dtype is BOOL else values.astype(dtype.value)


def dtype_of_operands(name: str) -> DType:
    if name.startswith(("bitwise", "shift")):
        return DType.INT64
    return BOOL if name.startswith("logical") else F64


def test_every_function_has_a_spelling():
    assert set(TEMPLATES) == set(FUNCTIONS)


OF_COMPLEX = ("real", "imag", "conj", "angle", "add", "subtract", "multiply", "divide", "exp", "sin", "sqrt")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        *((name, dtype_of_operands(name)) for name in FUNCTIONS if name not in ("real", "imag", "conj", "angle")),
        *((name, C128) for name in OF_COMPLEX),
    ],
)
def test_functions_mean_what_the_interpreter_says(name, plain):
    dtypes = [BOOL if name == "where" and position == 0 else plain for position in range(FUNCTIONS[name].arity)]
    value = apply(name, *(at(operand, dtype) for operand, dtype in zip("xyz", dtypes, strict=False)))
    high = 0.9 if name in BELOW_ONE else 2.0
    low = 1.1 if name == "acosh" else 0.1
    run(elementwise(value, *dtypes), *(array(dtype, seed, low, high) for seed, dtype in enumerate(dtypes)))


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.arity == 2])
def test_functions_take_a_number_in_place_of_an_operand(name, position):
    dtype = dtype_of_operands(name)
    operands: list[Expression] = [at("x", dtype), at("x", dtype)]
    operands[position] = Literal({BOOL: True, F64: 1.75}.get(dtype, 2), dtype)
    run(elementwise(apply(name, *operands), dtype), array(dtype, 0, 0.1, 3.0))


HALF, TENTH = Literal(0.5, F64), Literal(0.1, F64)
X, Y = at("x", F64), at("y", F64)
POSITIVE = apply("greater", X, Literal(0.0, F64))

EXPRESSIONS = {
    "two numbers chosen by a tensor": apply("where", POSITIVE, TENTH, HALF),
    "truth chosen by a tensor": apply("where", POSITIVE, Literal(True, BOOL), Literal(False, BOOL)),
    "chosen by a number": apply("where", Literal(False, BOOL), X, HALF),
    "only numbers": apply("add", TENTH, HALF),
    "a number": TENTH,
    "a truth value": Literal(True, BOOL),
    "an integer": Literal(3, I64),
    "numbers, converted": Cast(apply("multiply", TENTH, HALF), F32),
    "converted to an integer, then scaled": apply("multiply", Cast(X, I64), Literal(3, I64)),
    "truth as number": apply("multiply", Cast(POSITIVE, F64), Y),
    "conversion of a sum": Cast(apply("add", X, Y), F32),
    "difference of a difference": apply("subtract", X, apply("subtract", Y, X)),
    "chain of differences": apply("subtract", apply("subtract", X, Y), X),
    "quotient of a product": apply("divide", X, apply("multiply", Y, Y)),
    "negated sum, squared": apply("multiply", apply("negate", apply("add", X, Y)), apply("negate", X)),
    "comparison of comparisons": apply("equal", POSITIVE, apply("less", X, Y)),
    "and of comparisons": apply("logical_and", POSITIVE, apply("logical_not", apply("less", X, Y))),
    "or below and": apply("logical_and", apply("logical_or", POSITIVE, POSITIVE), apply("less", X, Y)),
    "bounded from both sides": apply("minimum", apply("maximum", X, Literal(-0.5, F64)), HALF),
    "bounded from below": apply("maximum", X, Literal(0.0, F64)),
    "negative zero": apply("add", X, Literal(-0.0, F64)),
    "infinite": apply("minimum", X, Literal(float("inf"), F64)),
    "not a number": apply("add", X, Literal(float("nan"), F64)),
    "exponential in a branch": apply("where", apply("less_equal", X, HALF), apply("exp", apply("negate", X)), Y),
}


@pytest.mark.parametrize("value", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions(value):
    run(elementwise(value, F64, F64), array(F64, 0), array(F64, 1))


def test_bounds_let_nan_through():
    for name in ("maximum", "minimum"):
        body = spell_body(elementwise(apply(name, X, HALF), F64), {"x": "x"}, own_outputs=True)
        found = eval(body.statements[-1].value, {"torch": torch, "x": torch.tensor([[float("nan")]])})
        assert found.isnan().all()


def indexed(shape, extents, indices):
    """y[i0, i1 …] = x[indices], for an input x of a shape."""
    axes = tuple(Axis(f"i{position}", extent) for position, extent in enumerate(extents))
    store = Store("y", tuple(symbol(axis.name) for axis in axes), Load("x", indices, F64))
    kernel = Kernel("y", (Buffer("y", F64, tuple(extents)),), axes, (), (store,))
    return Program("case", (Buffer("x", F64, shape),), (), (kernel,), ("y",), ())


I2, DEPTH = symbol("i2"), size_symbol("x", 2)
VIEWS = {
    "x": ((ROWS, COLUMNS), (ROWS, COLUMNS), (I0, I1)),
    "x[1:]": ((ROWS, COLUMNS), (ROWS - 1, COLUMNS), (I0 + 1, I1)),
    "x[:, :-1]": ((ROWS, COLUMNS), (ROWS, COLUMNS - 1), (I0, I1)),
    "x[:, ::2]": ((ROWS, COLUMNS), (ROWS, (COLUMNS + 1) // 2), (I0, 2 * I1)),
    "x[:, 1:5:2]": ((ROWS, COLUMNS), (ROWS, integer(2)), (I0, 2 * I1 + 1)),
    "x.mT": ((ROWS, COLUMNS), (COLUMNS, ROWS), (I1, I0)),
    "x[:, -1]": ((ROWS, COLUMNS), (ROWS,), (I0, COLUMNS - 1)),
    "x[2]": ((ROWS, COLUMNS), (COLUMNS,), (integer(2), I0)),
    "x[:, None].expand(x_size_0, 3, x_size_1)": ((ROWS, COLUMNS), (ROWS, integer(3), COLUMNS), (I0, I2)),
    "x.expand(3, x_size_0, x_size_1)": ((ROWS, COLUMNS), (integer(3), ROWS, COLUMNS), (I1, I2)),
    "x.permute(2, 0, 1)": ((ROWS, COLUMNS, DEPTH), (DEPTH, ROWS, COLUMNS), (I1, I2, I0)),
    "x.transpose(0, 1)": ((ROWS, COLUMNS, DEPTH), (COLUMNS, ROWS, DEPTH), (I1, I0, I2)),
    "x[:, 1].mT": ((ROWS, COLUMNS, DEPTH), (DEPTH, ROWS), (I1, ONE, I0)),
    "x.flatten(0, 1)": ((ROWS, COLUMNS), (ROWS * COLUMNS,), (I0 // COLUMNS, I0 % COLUMNS)),
    "x.flatten(0, 1)[1:]": ((ROWS, COLUMNS), (ROWS * COLUMNS - 1,), ((I0 + 1) // COLUMNS, (I0 + 1) % COLUMNS)),
    "x[:, :6].unflatten(1, (2, 3))": ((ROWS, COLUMNS), (ROWS, integer(2), integer(3)), (I0, 3 * I1 + I2)),
    "x[:, :6].unflatten(1, (2, 3)).transpose(0, 1)": (
        (ROWS, COLUMNS),
        (integer(2), ROWS, integer(3)),
        (I1, 3 * I0 + I2),
    ),
}


@pytest.mark.parametrize(("text", "case"), VIEWS.items(), ids=VIEWS)
def test_views(text, case):
    shape = (4, 6, 5)[: len(case[0])]
    body = run(indexed(*case), np.random.default_rng(0).standard_normal(shape))
    assert body.statements[-1].value == f"{text}.clone()"


def test_a_dimension_of_size_one_stands_for_a_missing_axis():
    narrow = Buffer("x", F64, (ROWS, ONE))
    row = Buffer("y", F64, (size_symbol("y", 0),))
    axes = (Axis("i0", ROWS), Axis("i1", size_symbol("y", 0)))
    value = apply("multiply", Load("x", (I0, ZERO), F64), Load("y", (I1,), F64))
    target = Buffer("z", F64, tuple(axis.extent for axis in axes))
    kernel = Kernel("z", (target,), axes, (), (Store("z", (I0, I1), value),))
    body = run(Program("case", (narrow, row), (), (kernel,), ("z",), ()), np.ones((3, 1)), np.arange(4.0))
    assert body.statements[-1].value == "x * y"


def pieces(*offsets):
    target = Buffer("y", F64, (ROWS, 2 * COLUMNS))
    values = (at("x", F64), apply("negate", at("x", F64)))
    stores = tuple(Store("y", (I0, I1 + offset), value) for offset, value in zip(offsets, values, strict=True))
    kernel = Kernel("y", (target,), (Axis("i0", ROWS), Axis("i1", COLUMNS)), (), stores)
    return Program("case", (Buffer("x", F64, (ROWS, COLUMNS)),), (), (kernel,), ("y",), ())


def test_pieces_are_put_together_in_order():
    body = run(pieces(COLUMNS, ZERO), array(F64, 0))
    assert [statement.value for statement in body.statements] == ["torch.cat([-x, x], dim=1)"]


@pytest.mark.parametrize("offsets", [(ZERO, 2 * COLUMNS), (ZERO, ZERO), (ONE, COLUMNS)])
def test_pieces_that_do_not_tile_are_a_bug(offsets):
    with pytest.raises(InternalError, match="pieces of y"):
        spell_body(pieces(*offsets), {"x": "x"}, own_outputs=True)


def test_sizes_that_no_input_has_are_refused():
    program = Program("case", (), ("count",), (), (), ())
    with pytest.raises(NoKernel, match="case is given sizes that none of its tensors has"):
        spell_body(program, {}, own_outputs=True)


def test_names_hide_nothing():
    source = Buffer("x", F64, (ROWS, COLUMNS))
    doubled = apply("add", at("x", F64), at("x", F64))
    axes = (Axis("i0", ROWS), Axis("i1", COLUMNS))
    kernel = Kernel("sum", (Buffer("sum", F64, (ROWS, COLUMNS)),), axes, (), (Store("sum", (I0, I1), doubled),))
    view = View(Buffer("class", F64, (COLUMNS, ROWS)), "sum", tuple(map(symbol, reversed(view_axes(2)))))
    call = Call((Buffer("torch", F64, (ROWS, ROWS)),), "aten::mm", "", (TensorOperand("x"), TensorOperand("class")))
    body = run(Program("case", (source,), (), (kernel, view, call), ("torch",), ()), array(F64, 0))
    assert [statement.names for statement in body.statements] == [("sum_",), ("torch_",)]
    assert body.statements[-1].value == "torch.ops.aten.mm(x, sum_.mT)"


aten = torch.ops.aten
X_, Y_ = (Buffer(name, F64, (ROWS, ROWS)) for name in "xy")
CALLS = {
    "torch.ops.aten.sum(x, dtype=torch.float64)": (aten.sum.default, {"self": X_, "dtype": torch.float64}),
    'torch.ops.aten.gelu(x, approximate="tanh")': (aten.gelu.default, {"self": X_, "approximate": "tanh"}),
    "torch.ops.aten.softmax.int(x, 0, torch.float64)": (
        aten.softmax.int,
        {"self": X_, "dim": 0, "dtype": torch.float64},
    ),
    "torch.ops.aten.mean(x)": (aten.mean.default, {"self": X_}),
    "torch.ops.aten.zeros([2], device=x.device)": (aten.zeros.default, {"size": [2], "device": torch.device("cpu")}),
    "torch.ops.aten._cdist_forward(x, y, 1, None)": (
        aten._cdist_forward.default,
        {"x1": X_, "x2": Y_, "p": 1.0, "compute_mode": None},
    ),
    "torch.ops.aten.linalg_inv_ex(x, check_errors=True)": (aten.linalg_inv_ex.default, {"A": X_, "check_errors": True}),
}


@pytest.mark.parametrize(("text", "call"), CALLS.items(), ids=CALLS)
def test_calls(text, call):
    function, given = call
    assert spell_call(call_of(function, given, {}, ()), str, str, "x.device") == text


LONG = [
    " + ".join(f"some_rather_long_name_{n} * another_long_name_{n}" for n in range(5)),
    "torch.cat([" + ", ".join(f"first_{n} * torch.tanh(second_{n})" for n in range(8)) + "], dim=1)",
    "torch.where(" + ", ".join(" * ".join(f"name_{n}_{m}" for m in range(8)) for n in range(3)) + ")",
    "(" + " - ".join(f"some_rather_long_name_{n}" for n in range(8)) + ").expand(first_size, second_size)",
    "x[:, " + " + ".join(f"some_rather_long_name_{n}" for n in range(8)) + "]",
]


@pytest.mark.parametrize("value", LONG)
def test_long_lines_are_broken_and_mean_the_same(value):
    lines = reduce_assignment("result", value, "")
    assert len(lines) > 1
    assert max(map(len, lines)) <= 120
    assert ast.dump(ast.parse("\n".join(lines))) == ast.dump(ast.parse(f"result = {value}"))

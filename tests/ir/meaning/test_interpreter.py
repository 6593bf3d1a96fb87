from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from opwright.ir.expressions.conversion import convert_array
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Cast, Expression, Literal, Load, Local, apply
from opwright.ir.expressions.integer import ONE, ZERO, Integer, greatest, integer, symbol
from opwright.ir.meaning.interpreter import interpret
from opwright.ir.program import (
    Buffer,
    Call,
    ConstantOperand,
    Kernel,
    Let,
    ListOperand,
    Operand,
    OptionalOperand,
    Program,
    SizeOperand,
    Store,
    TensorOperand,
    View,
)
from opwright.ir.verifier import verify
from tests.ir.programs import F32, I0, I1, gated, joined, matrix, over, with_case

Array = npt.NDArray[Any]
rows, columns = matrix("x").shape
d0, d1 = symbol("d0"), symbol("d1")
GENERATOR = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return GENERATOR.standard_normal(shape, dtype=np.float32)


def run(program: Program, *inputs: Array, **sizes: int) -> tuple[Array, ...]:
    verify(program)
    return interpret(program, inputs, sizes)


def elementwise(*inputs: Buffer, value: Expression, lets: tuple[Let, ...] = ()) -> Program:
    """One kernel over the shape of the first input."""
    y = Buffer("y", value.dtype, inputs[0].shape)
    indices = tuple(symbol(f"i{dimension}") for dimension in range(len(y.shape)))
    kernel = Kernel("y", (y,), over(*y.shape), lets, (Store("y", indices, value),))
    return Program("elementwise", inputs, (), (kernel,), ("y",), ())


def viewed(shape: tuple[Integer, ...], *indices: Integer) -> Program:
    """A copy of one view of the matrix x."""
    view = View(Buffer("view", F32, shape), "x", indices)
    copy = elementwise(view.target, value=Load("view", (I0, I1)[: len(shape)], F32))
    return replace(copy, inputs=(matrix("x"),), steps=(view, *copy.steps))


def called(function: str, overload: str, shape: tuple[Integer, ...], *operands: Operand) -> Program:
    call = Call((Buffer("y", F32, shape),), function, overload, (TensorOperand("x"), *operands))
    return Program("called", (matrix("x"),), (), (call,), ("y",), ())


def sizes(*values: Integer | int) -> ListOperand:
    return ListOperand(tuple(SizeOperand(integer(value)) for value in values))


x_element = Load("x", (I0, I1), F32)
x = normal(4, 6)


@pytest.mark.parametrize(
    "given",
    [x, x[::-1, ::2], x.T, np.broadcast_to(x[:1], (5, 6)), x[:0], np.asfortranarray(x)],
    ids=lambda g: str(g.shape),
)
def test_elementwise_with_strides_and_broadcast(given: Array) -> None:
    bias, scale = Buffer("bias", F32, (columns,)), Buffer("scale", F32, ())
    sum_ = apply("add", x_element, Load("bias", (I1,), F32))
    program = elementwise(matrix("x"), bias, scale, value=apply("multiply", sum_, Load("scale", (), F32)))
    offsets, factor = normal(given.shape[1]), np.array(3, np.float32)
    (y,) = run(program, given, offsets, factor)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, (given + offsets) * factor)


def test_float32_is_computed_in_float32() -> None:
    third = apply("divide", Literal(1, F32), Literal(3, F32))
    (y,) = run(elementwise(matrix("x"), value=apply("multiply", x_element, third)), x)
    np.testing.assert_array_equal(y, x * np.float32(1 / 3))


@pytest.mark.parametrize("dtype", [DType.BFLOAT16, DType.FLOAT16])
def test_half_is_loaded_wide_and_stored_rounded(dtype: DType) -> None:
    """A bfloat16 comes and goes as a float32 of the same value."""
    given = convert_array(x, dtype)
    value = apply("multiply", Cast(Load("x", (I0, I1), dtype), F32), Literal(1.1, F32))
    (y,) = run(elementwise(matrix("x", dtype), value=Cast(value, dtype)), given)
    expected = convert_array(given.astype(np.float32) * np.float32(1.1), dtype)
    assert y.dtype == expected.dtype
    np.testing.assert_array_equal(y, expected)
    assert not np.array_equal(y, given.astype(np.float32) * np.float32(1.1))


def test_complex_numbers_and_their_parts() -> None:
    z = (x + 1j * x[::-1]).astype(np.complex64)
    load = Load("x", (I0, I1), DType.COMPLEX64)
    turned = apply("multiply", apply("conj", load), Literal(2 - 1j, DType.COMPLEX64))
    value = apply("complex", apply("abs", turned), apply("imag", load))
    (y,) = run(elementwise(matrix("x", DType.COMPLEX64), value=value), z)
    assert y.dtype == np.complex64
    np.testing.assert_allclose(y, np.abs(z) * np.sqrt(5) + 1j * z.imag, rtol=1e-6)


@pytest.mark.parametrize("dtype", [DType.UINT8, DType.INT8, DType.INT16])
def test_small_integers_wrap_around(dtype: DType) -> None:
    given = np.arange(24).reshape(4, 6).astype(dtype.value)
    load = Load("x", (I0, I1), dtype)
    (y,) = run(elementwise(matrix("x", dtype), value=apply("multiply", load, Literal(3001, dtype))), given)
    np.testing.assert_array_equal(y, (given.astype(np.int64) * 3001).astype(dtype.value))


VIEWS = {
    "chunk": (viewed((rows, columns // 3), d0, d1 + columns // 3), x[:, 2:4]),
    "step": (viewed((rows // 2, columns), 2 * d0 + 1, d1), x[1::2]),
    "flip": (viewed((rows, columns), rows - 1 - d0, d1), x[::-1]),
    "transpose": (viewed((columns, rows), d1, d0), x.T),
    "select": (viewed((rows,), d0, columns - 1), x[:, -1]),
    "expand": (viewed((rows, columns), ZERO, d1), np.broadcast_to(x[0], x.shape)),
    "flatten": (viewed((rows * columns,), d0 // columns, d0 % columns), x.ravel()),
    "diagonal": (viewed((greatest(rows, columns) - 2,), d0, greatest(d0, ONE)), x[[0, 1, 2, 3], [1, 1, 2, 3]]),
    "empty": (viewed((ZERO, columns), d0 + rows, d1), x[:0]),
}


@pytest.mark.parametrize(("program", "expected"), VIEWS.values(), ids=VIEWS)
def test_view(program: Program, expected: Array) -> None:
    np.testing.assert_array_equal(run(program, x)[0], expected)


def test_pieces_stored_into_one_buffer() -> None:
    a, b = normal(3, 2), normal(3, 4)
    np.testing.assert_array_equal(run(joined(), a, b)[0], np.concatenate([a, b], axis=1))


def test_element_that_nothing_writes_is_nan() -> None:
    first = replace(joined(), steps=joined().steps[:1])
    (whole,) = run(first, normal(3, 2), normal(3, 4))
    np.testing.assert_array_equal(np.isnan(whole), [[False] * 2 + [True] * 4] * 3)


VALUES = {
    "where": (
        apply("where", apply("greater", x_element, Literal(0, F32)), x_element, Literal(0, F32)),
        np.where(x > 0, x, np.float32(0)),
    ),
    "to integers": (Cast(apply("multiply", x_element, Literal(10, F32)), DType.INT64), (x * 10).astype(np.int64)),
    "to double": (Cast(x_element, DType.FLOAT64), x.astype(np.float64)),
    "to truth": (Cast(Cast(x_element, DType.INT32), DType.BOOL), x.astype(np.int32) != 0),
    "literal": (Literal(7, DType.INT32), np.full((4, 6), 7, np.int32)),
    "overflow": (apply("exp", apply("multiply", x_element, Literal(1e9, F32))), np.where(x > 0, np.inf, 0)),
}


@pytest.mark.parametrize(("value", "expected"), VALUES.values(), ids=VALUES)
def test_value(value: Expression, expected: Array) -> None:
    (y,) = run(elementwise(matrix("x"), value=value), x)
    assert y.dtype == np.dtype(value.dtype.value)
    np.testing.assert_array_equal(y, expected)


def test_lets_are_bound_in_order() -> None:
    lets = (Let("a", apply("abs", x_element)), Let("b", apply("sqrt", Local("a", F32))))
    value = apply("divide", Local("a", F32), Local("b", F32))
    (y,) = run(elementwise(matrix("x"), value=value, lets=lets), x)
    np.testing.assert_array_equal(y, abs(x) / np.sqrt(abs(x)))


def test_views_kernel_and_call_together() -> None:
    weight = normal(3, 5)
    gate, mixed = run(gated(), x, weight, columns=3)
    expected = 1 / (1 + np.exp(-x[:, :3])) * np.tanh(x[:, 3:])
    np.testing.assert_array_equal(gate, expected)
    np.testing.assert_array_equal(mixed, expected @ weight)


NONE = OptionalOperand(None)
CALLS = {
    "sum": (called("aten::sum", "", (), NONE), x.sum(dtype=np.float32)),
    "sum of columns": (called("aten::sum", "dim_IntList", (columns,), sizes(0)), x.sum(axis=0)),
    "sum with a dtype": (
        called("aten::sum", "", (), OptionalOperand(ConstantOperand("float32", "ScalarType"))),
        x.sum(dtype=np.float32),
    ),
    "sum kept": (
        called("aten::sum", "dim_IntList", (rows, ONE), sizes(-1), ConstantOperand(True, "bool"), NONE),
        x.sum(axis=1, keepdims=True),
    ),
    "sum of everything": (called("aten::sum", "dim_IntList", (), sizes()), x.sum()),
    "t": (called("aten::t", "", (columns, rows)), x.T),
    "transpose": (called("aten::transpose", "int", (columns, rows), *sizes(0, -1).items), x.T),
    "permute": (called("aten::permute", "", (columns, rows), sizes(1, 0)), x.T),
    "reshape": (called("aten::reshape", "", (rows * 2, columns // 2), sizes(rows * 2, -1)), x.reshape(8, 3)),
}


@pytest.mark.parametrize(("program", "expected"), CALLS.values(), ids=CALLS)
def test_call(program: Program, expected: Array) -> None:
    np.testing.assert_array_equal(run(program, x)[0], expected)


def test_calls_given_by_the_caller() -> None:
    both = (Buffer("low", F32, (rows,)), Buffer("high", F32, (rows,)))
    call = Call(both, "aten::range_of", "dim", (TensorOperand("x"), SizeOperand(ONE)))
    program = Program("called", (matrix("x"),), (), (call,), ("high", "low"), ())
    meaning = {"aten::range_of.dim": lambda array, axis: (array.min(axis), array.max(axis))}
    high, low = interpret(program, [x], calls=meaning)
    np.testing.assert_array_equal(high, x.max(axis=1))
    np.testing.assert_array_equal(low, x.min(axis=1))


def racing() -> Program:
    """Every column of a row writes the same element."""
    store = Store("y", (I0,), x_element)
    kernel = Kernel("y", (Buffer("y", F32, (rows,)),), over(rows, columns), (), (store,))
    return Program("racing", (matrix("x"),), (), (kernel,), ("y",), ())


def overflowing() -> Program:
    """A kernel stores beyond the buffer that it declares."""
    store = Store("y", (I0 + 1, I1), x_element)
    kernel = Kernel("y", (Buffer("y", F32, (rows, columns)),), over(rows, columns), (), (store,))
    return Program("overflowing", (matrix("x"),), (), (kernel,), ("y",), ())


REFUSED: dict[str, tuple[Program, tuple[Array, ...], type[Exception], str]] = {
    "index too large": (viewed((rows, columns), d0, d1 + 1), (x,), IndexError, r"index d1 \+ 1 of x leaves its 6"),
    "index below zero": (viewed((rows, columns), d0 - 1, d1), (x,), IndexError, "index d0 - 1 of x leaves its 4"),
    "store out of range": (overflowing(), (x,), IndexError, r"index i0 \+ 1 of y leaves its 4"),
    "one element twice": (racing(), (x,), ValueError, "two points write the same element of y"),
    "a guard": (joined(), (normal(3, 2), normal(4, 2)), ValueError, "b_size_0 == a_size_0 does not hold for"),
    "an array less": (joined(), (x,), ValueError, "joined takes 2 arrays, 1 were given"),
    "a size less": (gated(), (x, x), ValueError, "gated needs the sizes columns"),
    "rank of an input": (racing(), (x[0],), ValueError, "x has rank 2, an array of rank 1 was given"),
    "dtype of an input": (racing(), (x.astype(np.float64),), ValueError, r"x is float32\[4, 6\], not float64\[4, 6\]"),
    "unknown call": (called("aten::fft", "", ()), (x,), ValueError, "aten::fft has no meaning here"),
    "shape of a result": (
        called("aten::t", "", (rows, columns)),
        (x,),
        ValueError,
        r"y is float32\[4, 6\], not float32",
    ),
}


@pytest.mark.parametrize(("program", "inputs", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refusal(program: Program, inputs: tuple[Array, ...], error: type[Exception], message: str) -> None:
    verify(program)
    with pytest.raises(error, match=message):
        interpret(program, inputs)


def test_a_case_serves_for_its_sizes_alone() -> None:
    three, four = normal(5, 3), normal(3, 4)
    np.testing.assert_array_equal(run(with_case(), three)[0], three[:, 2])
    np.testing.assert_allclose(run(with_case(), four)[0], four.sum(1), rtol=1e-5)

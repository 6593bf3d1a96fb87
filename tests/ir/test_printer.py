from __future__ import annotations

import pytest

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Load, Local, apply
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import ZERO, integer, symbol
from opwright.ir.printer import BINDING, print_expression, print_program, print_step
from opwright.ir.program import (
    Buffer,
    Call,
    ConstantOperand,
    Kernel,
    ListOperand,
    OptionalOperand,
    SizeOperand,
    Store,
    TensorOperand,
)
from tests.ir.programs import F32, gated, joined, with_case


def test_program_with_every_step() -> None:
    assert (
        print_program(gated())
        == """\
program gated(x: float32[x_size_0, x_size_1], weight: float32[weight_size_0, weight_size_1]) \
sizes (columns) -> (gate, mixed)
  guard x_size_1 == 2*columns
  guard weight_size_0 == columns
  view left: float32[x_size_0, columns] = x[d0, d1]
  view right: float32[x_size_0, columns] = x[d0, columns + d1]
  kernel gate over i0 < x_size_0, i1 < columns
    new gate: float32[x_size_0, columns]
    let opening = sigmoid(left[i0, i1])
    gate[i0, i1] = opening * tanh(right[i0, i1])
  call mixed: float32[x_size_0, weight_size_1] = aten::mm(gate, weight)"""
    )


def test_kernels_that_share_a_buffer() -> None:
    assert (
        print_program(joined())
        == """\
program joined(a: float32[a_size_0, a_size_1], b: float32[b_size_0, b_size_1]) sizes () -> (whole)
  guard b_size_0 == a_size_0
  kernel whole_0 over i0 < a_size_0, i1 < a_size_1
    new whole: float32[a_size_0, a_size_1 + b_size_1]
    whole[i0, i1] = a[i0, i1]
  kernel whole_1 over i0 < a_size_0, i1 < b_size_1
    whole[i0, a_size_1 + i1] = b[i0, i1]"""
    )


def test_steps_for_certain_sizes() -> None:
    assert (
        print_program(with_case())
        == """\
program summed(x: float32[x_size_0, x_size_1]) sizes () -> (sums)
  kernel sums over i0 < x_size_0, i1 < x_size_1, rows of i1
    new sums: float32[x_size_0]
    reduce total = sum of x[i0, i1]
    sums[i0] = total
  case x_size_1 = 3
    kernel sums over i0 < x_size_0
      new sums: float32[x_size_0]
      sums[i0] = x[i0, 2]"""
    )


def test_call_with_every_operand() -> None:
    operands = (
        TensorOperand("x"),
        ListOperand((SizeOperand(integer(-1)), SizeOperand(symbol("n") + 1))),
        ConstantOperand(True, "bool"),
        OptionalOperand(ConstantOperand("float32", "ScalarType")),
        OptionalOperand(None),
        ConstantOperand(0.5, "float"),
    )
    call = Call((Buffer("total", F32, ()), Buffer("count", DType.INT64, ())), "aten::tally", "dim", operands)
    expected = "call total: float32[], count: int64[] = aten::tally.dim(x, [-1, n + 1], True, float32, None, 0.5)"
    assert print_step(call) == expected


def test_kernel_without_axes() -> None:
    store = Store("total", (), Load("x", (ZERO,), F32))
    kernel = Kernel("total", (Buffer("total", F32, ()),), (), (), (store,))
    assert print_step(kernel) == "kernel total\n  new total: float32[]\n  total[] = x[0]"


def number(value: float, dtype: DType = F32) -> Expression:
    return Literal(value, dtype)


x, y, z = (Local(name, F32) for name in "xyz")
p, q = (Local(name, DType.BOOL) for name in "pq")

EXPRESSIONS: dict[str, Expression] = {
    # chains from the left, and their opposites
    "x + y - z": apply("subtract", apply("add", x, y), z),
    "x - (y + z)": apply("subtract", x, apply("add", y, z)),
    "x - (y - z)": apply("subtract", x, apply("subtract", y, z)),
    "x / y * z": apply("multiply", apply("divide", x, y), z),
    "x / (y * z)": apply("divide", x, apply("multiply", y, z)),
    # sums and products
    "x * y + z": apply("add", apply("multiply", x, y), z),
    "x + y * z": apply("add", x, apply("multiply", y, z)),
    "(x + y) * z": apply("multiply", apply("add", x, y), z),
    # half and complex
    "float32(bfloat16(x)) * 0.1": apply("multiply", Cast(Cast(x, DType.BFLOAT16), F32), number(0.1)),
    "conj(c) * complex(2.0, -0.1)": apply(
        "multiply", apply("conj", Local("c", DType.COMPLEX64)), Literal(2 - 0.1j, DType.COMPLEX64)
    ),
    # prefixes
    "-x * y": apply("multiply", apply("negate", x), y),
    "-(x * y)": apply("negate", apply("multiply", x, y)),
    "-(-x)": apply("negate", apply("negate", x)),
    "-(-2.0)": apply("negate", number(-2)),
    "!(x < y)": apply("logical_not", apply("less", x, y)),
    # reciprocals
    "1 / x": apply("reciprocal", x),
    "1 / (x * y)": apply("reciprocal", apply("multiply", x, y)),
    "1 / (1 / x)": apply("reciprocal", apply("reciprocal", x)),
    "1 / x / y": apply("divide", apply("reciprocal", x), y),
    "x * (1 / y)": apply("multiply", x, apply("reciprocal", y)),
    # truth and comparison
    "p & q & (x < y)": apply("logical_and", apply("logical_and", p, q), apply("less", x, y)),
    "p & (q & p)": apply("logical_and", p, apply("logical_and", q, p)),
    "(p & q) | p": apply("logical_or", apply("logical_and", p, q), p),
    "(p == q) == p": apply("equal", apply("equal", p, q), p),
    "x + y <= z * x": apply("less_equal", apply("add", x, y), apply("multiply", z, x)),
    # where
    "x < y ? x + y : -z": apply("where", apply("less", x, y), apply("add", x, y), apply("negate", z)),
    "p ? x : (q ? y : z)": apply("where", p, x, apply("where", q, y, z)),
    "(p ? x : y) * z": apply("multiply", apply("where", p, x, y), z),
    "tanh(p ? x : y)": apply("tanh", apply("where", p, x, y)),
    # calls and leaves
    "pow(x + y, 2.0)": apply("pow", apply("add", x, y), number(2)),
    "float64(x + y)": Cast(apply("add", x, y), DType.FLOAT64),
    "m[i, 2*i + 1]": Load("m", (symbol("i"), 2 * symbol("i") + 1), F32),
    "scale[]": Load("scale", (), F32),
    "x * -1.5": apply("multiply", x, number(-1.5)),
    "x + -inf": apply("add", x, number(float("-inf"))),
    "nan": number(float("nan")),
    "1e-08": number(1e-8),
    "1.0": number(1),
    "-0.0": number(-0.0),
    "True": number(1, DType.BOOL),
    "7": number(7, DType.INT64),
    "add(x)": Apply("add", (x,), F32),
    "unknown(x)": Apply("unknown", (x,), F32),
}


@pytest.mark.parametrize(("text", "expression"), EXPRESSIONS.items(), ids=EXPRESSIONS)
def test_expression(text: str, expression: Expression) -> None:
    assert print_expression(expression) == text


def test_every_template_says_how_tightly_it_binds() -> None:
    assert set(BINDING) == {name for name, row in FUNCTIONS.items() if row.template}

"""Formulas as MathML: what is written, and that it is well formed."""

import xml.etree.ElementTree as ET

import pytest

from opwright.codegen.formula import TEMPLATES, Formula
from opwright.drawing.mathml import formula_mathml
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Cast, Expression, Literal, Load, Local, apply
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import symbol

F32 = DType.FLOAT32
A, B, C = (Local(name, F32) for name in "abc")


def number(value: float) -> Expression:
    return Literal(value, F32)


def text_of(formula: Formula, arguments: tuple[str, ...] = ()) -> str:
    """The letters and signs of a formula, in order, with the structure in brackets."""
    written = formula_mathml(formula, arguments).replace("&nbsp;", " ")
    return "".join(map(_plain, ET.fromstring(f"<all>{written}</all>")))


def _plain(node: ET.Element) -> str:
    inside = [_plain(child) for child in node]
    match node.tag:
        case "mfrac":
            return f"{{{inside[0]}}}/{{{inside[1]}}}"
        case "msup":
            return f"{inside[0]}^{{{inside[1]}}}"
        case "msub":
            return f"{inside[0]}_{{{inside[1]}}}"
        case "msqrt":
            return f"√{{{''.join(inside)}}}"
        case "mrow" if node.get("class") == "bar":
            return f"bar{{{''.join(inside)}}}"
    return (node.text or "") + "".join(inside)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (apply("add", A, apply("multiply", B, C)), "a+b⋅c"),
        (apply("multiply", apply("add", A, B), C), "(a+b)⋅c"),
        (apply("subtract", A, apply("subtract", B, C)), "a−(b−c)"),
        (apply("subtract", A, apply("multiply", B, apply("add", A, C))), "a−b⋅(a+c)"),
        (apply("multiply", A, apply("multiply", B, C)), "a⋅(b⋅c)"),
        (apply("divide", apply("add", A, B), C), "{a+b}/{c}"),
        (apply("rsqrt", A), "{1}/{√{a}}"),
        (apply("multiply", A, A), "a^{2}"),
        (apply("multiply", apply("multiply", A, A), A), "a^{3}"),
        (apply("pow", apply("negate", A), number(0.5)), "(−a)^{0.5}"),
        (apply("exp", apply("negate", A)), "e^{−a}"),
        (apply("sigmoid", Local("tanh_cell", F32)), "σ(tanh_cell)"),
        (apply("maximum", A, number(-1.0)), "max(a,−1)"),
        (number(1e-06), "1⋅10^{−6}"),
        (apply("less", apply("less", A, B), C), "(a<b)<c"),
        (apply("where", apply("greater", A, number(0)), A, apply("expm1", A)), "elu(a)"),
        (apply("where", apply("less", A, B), A, C), "aif a<bcotherwise"),
        (Cast(A, DType.INT64), "int64(a)"),
        (Load("gates", (), F32), "gates"),
        (Local("sigmoid_1", F32), "sigmoid_{1}"),
    ],
)
def test_a_value_is_written(value: Expression, text: str) -> None:
    assert text_of(Formula("y", (), value)) == f"y={text}"


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (Formula("grad_x", (), Local("grad_output_0", F32)), "bar{x}=bar{y}_{0}"),
        (Formula("grad_cell", (), A), "grad_cell=a"),
        (Formula("total", (), apply("multiply", A, B), "sum"), "total=∑a⋅b"),
        (Formula("total", (), apply("add", A, B), "sum"), "total=∑(a+b)"),
        (Formula("top", (), A, "maximum"), "top=maximum(a)"),
        (Formula("cat", ("i0", str(symbol("i1") + symbol("n"))), A), "cat[i_{0},i_{1}+n]=a"),
        (Formula("b", (), Load("bias", (symbol("i1"),), F32), None, ("i1",)), "b=bias[i_{1}]"),
    ],
)
def test_places_gradients_and_reductions_are_written(formula: Formula, text: str) -> None:
    assert text_of(formula, ("x",)) == text


@pytest.mark.parametrize("function", sorted(set(FUNCTIONS) | set(TEMPLATES)))
def test_every_function_is_well_formed(function: str) -> None:
    operands = (A, B, C)[: FUNCTIONS[function].arity]
    assert all(name.name in text_of(Formula("y", (), apply(function, *operands))) for name in operands)


def test_names_cannot_break_the_page() -> None:
    assert "<script" not in formula_mathml(Formula("<script>", (), Local("a<b", F32)))

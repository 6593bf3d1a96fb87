from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.ir.expressions.affine import linear_coefficients
from opwright.ir.expressions.integer import (
    RELATIONS,
    ZERO,
    Condition,
    Integer,
    evaluate,
    greatest,
    holds,
    integer,
    product,
    spell,
    substitute,
    symbol,
    symbols_of,
)

NAMES = ("a", "b", "i", "j")
AXES = ("i", "j")
a, b, i, j = map(symbol, NAMES)

Tree = str | int | tuple[str, "Tree", "Tree"]

POLYNOMIAL = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def fold(tree: Tree, leaf: Callable[[str | int], Any], maximum: Callable[[Any, Any], Any]) -> Any:
    """Compute a tree with the operators of whatever its leaves become; no divisor is zero."""
    if not isinstance(tree, tuple):
        return leaf(tree)
    sign, left, right = tree[0], fold(tree[1], leaf, maximum), fold(tree[2], leaf, maximum)
    match sign:
        case "//":
            return left // (right * right + leaf(1))
        case "%":
            return left % (right * right + leaf(1))
        case "/-":
            return left // (right * right * leaf(-2) - leaf(1))
        case "max":
            return maximum(left, right)
        case _:
            return POLYNOMIAL[sign](left, right)


def as_integer(tree: Tree) -> Integer:
    return fold(tree, lambda leaf: symbol(leaf) if isinstance(leaf, str) else integer(leaf), greatest)


def as_number(tree: Tree, values: Mapping[str, int]) -> int:
    return fold(tree, lambda leaf: values[leaf] if isinstance(leaf, str) else leaf, max)


def trees(signs: tuple[str, ...], leaves: int = 6) -> st.SearchStrategy[Tree]:
    leaf = st.sampled_from(NAMES) | st.integers(-3, 3)
    return st.recursive(leaf, lambda below: st.tuples(st.sampled_from(signs), below, below), max_leaves=leaves)


ANY = trees((*POLYNOMIAL, "//", "%", "/-", "max"))
VALUES = st.fixed_dictionaries({name: st.integers(-20, 20) for name in NAMES})


@given(ANY, VALUES)
def test_evaluates_like_python(tree: Tree, values: dict[str, int]) -> None:
    assert evaluate(as_integer(tree), values) == as_number(tree, values)


@given(ANY, VALUES)
def test_its_text_is_python(tree: Tree, values: dict[str, int]) -> None:
    assert eval(spell(as_integer(tree)), {"max": max}, values) == as_number(tree, values)


@given(ANY, ANY, VALUES)
def test_substitution_is_evaluation_of_the_parts(tree: Tree, part: Tree, values: dict[str, int]) -> None:
    replaced = substitute(as_integer(tree), {"a": as_integer(part)})
    assert evaluate(replaced, values) == as_number(tree, {**values, "a": as_number(part, values)})


@given(ANY)
def test_substituting_numbers_leaves_a_constant(tree: Tree) -> None:
    values = dict.fromkeys(NAMES, 2)
    assert substitute(as_integer(tree), {name: integer(2) for name in NAMES}).constant == as_number(tree, values)


@given(ANY, ANY, ANY)
def test_laws_of_arithmetic_are_equalities(first: Tree, second: Tree, third: Tree) -> None:
    x, y, z = as_integer(first), as_integer(second), as_integer(third)
    assert x + y == y + x
    assert (x + y) + z == x + (y + z)
    assert x * y == y * x
    assert (x * y) * z == x * (y * z)
    assert x * (y + z) == x * y + x * z
    assert x - x == ZERO
    assert -(x - y) == y - x


@settings(deadline=None)
@given(trees(tuple(POLYNOMIAL), leaves=4), trees(tuple(POLYNOMIAL), leaves=4))
def test_different_polynomials_differ_somewhere(first: Tree, second: Tree) -> None:
    enough = range(5)  # one more than the degree of a product of four leaves: a polynomial that is zero here is zero
    points = [dict(zip(NAMES, point, strict=True)) for point in itertools.product(enough, repeat=len(NAMES))]
    agree = all(as_number(first, point) == as_number(second, point) for point in points)
    assert (as_integer(first) == as_integer(second)) is agree


@given(ANY)
def test_linear_coefficients_rebuild_the_expression(tree: Tree) -> None:
    expression = as_integer(tree)
    found = linear_coefficients(expression, AXES)
    if found is None:
        assert symbols_of(expression) & set(AXES)
        return
    coefficients, rest = found
    assert expression == sum((coefficient * symbol(axis) for axis, coefficient in coefficients.items()), rest)
    assert not any(symbols_of(part) & set(AXES) for part in (*coefficients.values(), rest))


AFFINE = {
    "constant": (integer(3), {}, integer(3)),
    "stride": (i * a + j + b, {"i": a, "j": integer(1)}, b),
    "sum of strides": (i * a + i * b + 2 * i, {"i": a + b + 2}, ZERO),
    "quotient of sizes": (i * (a // b) + a % b, {"i": a // b}, a % b),
}


@pytest.mark.parametrize(("expression", "coefficients", "rest"), AFFINE.values(), ids=AFFINE)
def test_linear_coefficients(expression: Integer, coefficients: dict[str, Integer], rest: Integer) -> None:
    assert linear_coefficients(expression, AXES) == (coefficients, rest)


@pytest.mark.parametrize("expression", [i * i, i * j, i // a, a % (i + 1), greatest(i, a), a * (j // 2)], ids=str)
def test_what_is_not_affine_has_no_coefficients(expression: Integer) -> None:
    assert linear_coefficients(expression, AXES) is None


TEXTS = {
    "0": ZERO,
    "-3": integer(-3),
    "a": a,
    "-2*a": -2 * a,
    "2*a*b + a - 1": 2 * b * a + a - 1,
    "b - a": b - a,
    "((a + 1) // (b*i))": (a + 1) // (i * b),
    "(a % (2*b))": a % (2 * b),
    "(2*a // 7)": (2 * a) // 7,
    "2*(a // 7)": 2 * (a // 7),
    "max(a, (b - 1))": greatest(a, b - 1),
}


@pytest.mark.parametrize(("text", "expression"), TEXTS.items(), ids=TEXTS)
def test_text(text: str, expression: Integer) -> None:
    assert str(expression) == text


def test_text_in_another_language() -> None:
    expression = (a + 1) // b + a % b + greatest(a, b)
    spelled = spell(expression, "floor_divide({}, {})", "modulo({}, {})", "std::max({}, {})")
    assert spelled == "floor_divide((a + 1), b) + modulo(a, b) + std::max(a, b)"


FOLDED = {
    "a // 1": (a // 1, a),
    "a % 1": (a % 1, ZERO),
    "7 // 2": (integer(7) // 2, integer(3)),
    "-7 // 2": (integer(-7) // 2, integer(-4)),
    "-7 % 2": (integer(-7) % 2, integer(1)),
    "max of numbers": (greatest(integer(2), integer(5)), integer(5)),
    "max of equals": (greatest(a + b, b + a), a + b),
    "empty product": (product([]), integer(1)),
    "product": (product([a, integer(2), a]), 2 * a * a),
}


@pytest.mark.parametrize(("expression", "simplest"), FOLDED.values(), ids=FOLDED)
def test_simplest_form(expression: Integer, simplest: Integer) -> None:
    assert expression == simplest


@given(st.sampled_from(sorted(RELATIONS)), ANY, ANY, VALUES)
def test_condition(relation: str, left: Tree, right: Tree, values: dict[str, int]) -> None:
    expected = RELATIONS[relation](as_number(left, values), as_number(right, values))
    assert holds(Condition(relation, as_integer(left), as_integer(right)), values) is expected


def test_symbols_inside_every_atom() -> None:
    assert symbols_of(a + (b // 2) * (integer(3) % i) + greatest(ZERO, j)) == set(NAMES)

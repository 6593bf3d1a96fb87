"""Formulas as MathML, written from their expression trees.

`grad_x`, the gradient for x, is written x̄, and `grad_output_0`, the gradient that is given for the first result, ȳ with
the index 0, as books on automatic differentiation write them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from html import escape
from typing import assert_never

from opwright.codegen.formula import TEMPLATES, Formula
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Load, Local

_CHOICE, _SUM, _PRODUCT, _PREFIX, _POWER, _TIGHTEST = 0, 3, 4, 5, 6, 10
_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε", "lambda": "λ", "mu": "μ"}
_GREEK |= {"sigma": "σ", "tau": "τ", "theta": "θ", "phi": "φ", "rho": "ρ", "omega": "ω"}
_REDUCTIONS = {"sum": "∑", "product": "∏"}
_SIGNS = {
    "add": ("+", _SUM), "subtract": ("−", _SUM), "multiply": ("⋅", _PRODUCT),
    "less": ("<", 2), "less_equal": ("≤", 2), "greater": (">", 2), "greater_equal": ("≥", 2),
    "equal": ("=", 2), "not_equal": ("≠", 2),
    "logical_and": ("∧", 1), "logical_or": ("∨", 1), "logical_xor": ("⊕", 1),
}  # fmt: skip
_NAMES = {"sigmoid": "σ", "maximum": "max", "minimum": "min"}


@dataclass(frozen=True, slots=True)
class _Written:
    """A piece of MathML and how tightly it binds."""

    text: str
    level: int = _TIGHTEST


def formula_mathml(formula: Formula, arguments: Collection[str] = ()) -> str:
    """Write a formula as `<math>` elements, between which a browser may break the line.

    Args:
        formula: What to write.
        arguments: The names whose gradients are written with a bar.
    """
    return "<wbr/>".join(f"<math>{_row(piece)}</math>" for piece in _Writer(arguments).formula(formula))


class _Writer:
    def __init__(self, arguments: Collection[str]) -> None:
        self._arguments = arguments

    def formula(self, formula: Formula) -> list[str]:
        first, *others = self._pieces(formula.value) if not self._is_whole(formula) else [self._right_side(formula)]
        place = self._element(formula.name, formula.indices)
        return [place + _sign("="), first, *others]

    def _is_whole(self, formula: Formula) -> bool:
        return formula.reduction is not None or formula.element is not None

    def _pieces(self, expression: Expression) -> list[str]:
        """The terms and factors of a value, each with the sign before it."""
        match expression:
            case Apply("add" | "subtract" as function, (left, right)):
                written = self._write(right)
                if written.level <= _SUM:
                    return [*self._pieces(left), _row(_between(_SIGNS[function][0]), _within(written, _PRODUCT))]
                first, *others = self._pieces(right)
                return [*self._pieces(left), _row(_between(_SIGNS[function][0]), first), *others]
            case Apply("multiply", (left, right)) if left != right and not _is_cube(expression):
                written = self._write(left)
                before = self._pieces(left) if written.level >= _PRODUCT else [_within(written, _PRODUCT)]
                return [*before, _row(_between("⋅"), _within(self._write(right), _PRODUCT + 1))]
            case _:
                return [self._write(expression).text]

    def _right_side(self, formula: Formula) -> str:
        value = formula.value
        if formula.element is not None and isinstance(value, Load):
            return self._element(value.buffer, formula.element)
        written = self._write(value)
        if formula.reduction is None:
            return written.text
        sign = _REDUCTIONS.get(formula.reduction)
        if sign:
            return _row(f'<mo largeop="true" movablelimits="true">{sign}</mo>', _within(written, _PRODUCT))
        return _call(_function(formula.reduction), [written])

    def _element(self, name: str, indices: Sequence[str]) -> str:
        inside = "<mo>,</mo>".join(_row(*map(_index_token, _tokens(index))) for index in indices)
        return _row(self.name(name), "<mo>[</mo>", inside, "<mo>]</mo>") if indices else self.name(name)

    def name(self, name: str) -> str:
        if given := re.fullmatch(r"grad_output_(\d+)", name):
            return f"<msub>{_bar('<mi>y</mi>')}<mn>{given[1]}</mn></msub>"
        if name == "grad_output":
            return _bar("<mi>y</mi>")
        plain = name.removeprefix("grad_")
        if plain != name and plain in self._arguments:
            return _bar(_identifier(plain))
        return _identifier(name)

    def _write(self, expression: Expression) -> _Written:
        match expression:
            case Literal(value):
                return _number(value)
            case Load(buffer):
                return _Written(self.name(buffer))
            case Local(name):
                return _Written(self.name(name))
            case Cast(operand) if operand.dtype.is_half:
                return self._write(operand)
            case Cast(operand, dtype):
                return _Written(_call(f'<mi mathvariant="normal">{dtype.value}</mi>', [self._write(operand)]))
            case Apply():
                return self._apply(expression)
            case _:
                assert_never(expression)

    def _apply(self, expression: Apply) -> _Written:
        match expression:
            case Apply("where", (Apply("greater", (x, Literal(0))), y, Apply("expm1", (z,)))) if x == y == z:
                return _Written(_call(_function("elu"), [self._write(x)]))
            case Apply("multiply", (Apply("multiply", (x, y)), z)) if x == y == z:
                return _power(self._write(x), "<mn>3</mn>")
            case Apply("multiply", (x, y)) if x == y:
                return _power(self._write(x), "<mn>2</mn>")
            case Apply(function, operands) if writer := _SHAPES.get(function):
                return writer([self._write(operand) for operand in operands])
            case Apply(function, operands) if function in _SIGNS:
                sign, level = _SIGNS[function]
                left, right = (self._write(operand) for operand in operands)
                first = level + 1 if level <= 2 else level
                return _Written(_row(_within(left, first), _sign(sign), _within(right, level + 1)), level)
            case Apply(function, operands):
                spoken = _NAMES.get(function, function)
                return _Written(_call(_function(spoken), [self._write(operand) for operand in operands]))


def _is_cube(expression: Apply) -> bool:
    match expression:
        case Apply("multiply", (Apply("multiply", (x, y)), z)):
            return x == y == z
    return False


def _power(base: _Written, exponent: str) -> _Written:
    return _Written(f"<msup>{_within(base, _TIGHTEST)}{exponent}</msup>", _POWER)


def _fraction(top: str, bottom: str) -> _Written:
    return _Written(f"<mfrac>{top}{bottom}</mfrac>", _PRODUCT)


def _root(operand: _Written) -> str:
    return f"<msqrt>{operand.text}</msqrt>"


def _where(operands: Sequence[_Written]) -> _Written:
    """Cases behind a line, which is a border: few fonts have a brace that stretches."""
    condition, first, second = operands
    rows = (
        f"<mtr><mtd>{first.text}</mtd><mtd><mtext>if&nbsp;</mtext>{condition.text}</mtd></mtr>"
        f"<mtr><mtd>{second.text}</mtd><mtd><mtext>otherwise</mtext></mtd></mtr>"
    )
    return _Written(f'<mtable class="cases">{rows}</mtable>', _CHOICE)


_SHAPES: dict[str, Callable[[Sequence[_Written]], _Written]] = {
    "divide": lambda given: _fraction(given[0].text, given[1].text),
    "reciprocal": lambda given: _fraction("<mn>1</mn>", given[0].text),
    "rsqrt": lambda given: _fraction("<mn>1</mn>", _root(given[0])),
    "sqrt": lambda given: _Written(_root(given[0])),
    "abs": lambda given: _Written(_row("<mo>|</mo>", given[0].text, "<mo>|</mo>")),
    "negate": lambda given: _Written(_row(_prefix("−"), _within(given[0], _PREFIX)), _PREFIX),
    "logical_not": lambda given: _Written(_row(_prefix("¬"), _within(given[0], _PREFIX)), _PREFIX),
    "pow": lambda given: _power(given[0], given[1].text),
    "exp": lambda given: _power(_Written('<mi mathvariant="normal">e</mi>'), given[0].text),
    "exp2": lambda given: _power(_Written("<mn>2</mn>"), given[0].text),
    "where": _where,
}
assert {*_SHAPES, *_SIGNS, *_NAMES} >= set(TEMPLATES), "formulas as text know a function that MathML does not"


def _number(value: complex) -> _Written:
    if isinstance(value, complex):
        return _Written(_row("<mo>(</mo>", f"<mn>{escape(f'{value:.6g}').replace('j', 'i')}</mn>", "<mo>)</mo>"))
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    digits, _, exponent = text.removeprefix("-").partition("e")
    written = f"<mn>{digits.replace('inf', '∞')}</mn>"
    if exponent:
        power = f"<msup><mn>10</mn>{_row(*map(_index_token, _tokens(str(int(exponent)))))}</msup>"
        return _Written(_row(_prefix("−") if value < 0 else "", written, _sign("⋅"), power), _PRODUCT)
    return _Written(_row(_prefix("−"), written), _SUM) if text.startswith("-") else _Written(written)


def _identifier(name: str) -> str:
    """A name; a number at its end becomes its index."""
    found = re.fullmatch(r"(.*?)_?(\d+)", name)
    stem, index = (found[1], found[2]) if found and found[1] else (name, "")
    text = _GREEK.get(stem, stem)
    variant = "" if len(text) == 1 else ' mathvariant="normal"'
    written = f"<mi{variant}>{escape(text)}</mi>"
    return f"<msub>{written}<mn>{index}</mn></msub>" if index else written


def _bar(written: str) -> str:
    """Draw the bar as a border: few fonts have one that stretches."""
    return f'<mrow class="bar">{written}</mrow>'


def _function(name: str) -> str:
    return f'<mi mathvariant="normal">{escape(name)}</mi>'


def _call(function: str, operands: Sequence[_Written]) -> str:
    inside = "<mo>,</mo>".join(operand.text for operand in operands)
    return _row(function, "<mo>(</mo>", inside, "<mo>)</mo>")


def _within(written: _Written, level: int) -> str:
    return written.text if written.level >= level else _row("<mo>(</mo>", written.text, "<mo>)</mo>")


def _sign(sign: str) -> str:
    return f"<mo>{escape(sign)}</mo>"


def _between(sign: str) -> str:
    """A sign at the beginning of a piece, with the room of one between two."""
    return f'<mo form="infix">{sign}</mo>'


def _prefix(sign: str) -> str:
    return f'<mo form="prefix">{sign}</mo>'


def _row(*parts: str) -> str:
    return f"<mrow>{''.join(parts)}</mrow>"


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]+", text)


def _index_token(token: str) -> str:
    if token.isdigit():
        return f"<mn>{token}</mn>"
    if token.isidentifier():
        return _identifier(token)
    return _sign(token.replace("-", "−").replace("*", "⋅"))

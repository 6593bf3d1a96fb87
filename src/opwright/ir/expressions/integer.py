"""Integer expressions: sizes, strides, offsets and loop indices.

    integer   = sum of (coefficient · atom · atom …)        always in this one normal form, so equal means equal
    atom      = Symbol(name) | Quotient(integer, integer) | Remainder(integer, integer) | Greatest(integer, integer)
    condition = Condition(relation, integer, integer)       relation is one of == != < <= > >=

Division and remainder round towards minus infinity, as in Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, assert_never

_MOST_REMEMBERED = 2**16


class _Hashed:
    """An expression whose hash is computed once: expressions hold others, and are keys everywhere.

    Each class names `__hash__` again, as a dataclass would make its own.
    """

    __slots__ = ("_hash",)
    __match_args__: ClassVar[Any] = ()
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash((type(self).__name__, *(getattr(self, name) for name in self.__match_args__)))
            object.__setattr__(self, "_hash", found)
            return found


@dataclass(frozen=True, slots=True)
class Symbol:
    """A run-time size or a loop axis."""

    name: str


@dataclass(frozen=True, slots=True)
class Quotient(_Hashed):
    """`dividend // divisor`."""

    __hash__ = _Hashed.__hash__

    dividend: Integer
    divisor: Integer


@dataclass(frozen=True, slots=True)
class Remainder(_Hashed):
    """`dividend % divisor`."""

    __hash__ = _Hashed.__hash__

    dividend: Integer
    divisor: Integer


@dataclass(frozen=True, slots=True)
class Greatest(_Hashed):
    """`max(left, right)`."""

    __hash__ = _Hashed.__hash__

    left: Integer
    right: Integer


Atom = Symbol | Quotient | Remainder | Greatest
Monomial = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Integer(_Hashed):
    """A sum of integer multiples of products of atoms, sorted; the empty sum is zero."""

    __hash__ = _Hashed.__hash__

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Integer | int) -> Integer:
        added = integer(other).terms
        if not added:
            return self
        return _collect((*self.terms, *added)) if self.terms else Integer(added)

    __radd__ = __add__

    def __neg__(self) -> Integer:
        return Integer(tuple((monomial, -coefficient) for monomial, coefficient in self.terms))

    def __sub__(self, other: Integer | int) -> Integer:
        return self + -integer(other)

    def __mul__(self, other: Integer | int) -> Integer:
        factors = integer(other).terms
        if factors == ONE.terms:
            return self
        if self.terms == ONE.terms:
            return Integer(factors)
        return _collect([(_product(left, right), a * b) for left, a in self.terms for right, b in factors])

    __rmul__ = __mul__

    def __floordiv__(self, other: Integer | int) -> Integer:
        divisor = integer(other)
        if divisor == ONE:
            return self
        if (a := self.constant) is not None and (b := divisor.constant):
            return integer(a // b)
        return _atom(Quotient(self, divisor))

    def __mod__(self, other: Integer | int) -> Integer:
        divisor = integer(other)
        if divisor == ONE:
            return ZERO
        if (a := self.constant) is not None and (b := divisor.constant):
            return integer(a % b)
        return _atom(Remainder(self, divisor))

    @property
    def constant(self) -> int | None:
        """The value if it is a plain number, else None."""
        match self.terms:
            case ():
                return 0
            case (((), value),):
                return value
            case _:
                return None

    def __str__(self) -> str:
        return spell(self)


ZERO = Integer(())
ONE = Integer((((), 1),))


def integer(value: Integer | int) -> Integer:
    """Make an integer expression of a number."""
    if isinstance(value, Integer):
        return value
    return Integer((((), value),)) if value else ZERO


@lru_cache(maxsize=4096)
def symbol(name: str) -> Integer:
    """Make an integer expression of a symbol."""
    return _atom(Symbol(name))


def greatest(left: Integer, right: Integer) -> Integer:
    """`max(left, right)`."""
    a, b = left.constant, right.constant
    if a is not None and b is not None:
        return integer(max(a, b))
    return left if left == right else _atom(Greatest(left, right))


def product(factors: Iterable[Integer]) -> Integer:
    """Multiply; the empty product is one."""
    result = ONE
    for factor in factors:
        result = result * factor
    return result


def is_never_negative(expression: Integer) -> bool:
    """Whether an expression is at least zero for all sizes; false also if that cannot be shown."""
    return all(
        coefficient >= 0 and all(_is_atom_never_negative(atom) for atom in monomial)
        for monomial, coefficient in expression.terms
    )


def _is_atom_never_negative(atom: Atom) -> bool:
    match atom:
        case Symbol():
            return True
        case Quotient(dividend, divisor):
            return is_never_negative(dividend) and is_never_negative(divisor)
        case Remainder(_, divisor):
            return is_never_negative(divisor)
        case Greatest(left, right):
            return is_never_negative(left) or is_never_negative(right)
        case _:
            assert_never(atom)


@dataclass(frozen=True, slots=True)
class Condition:
    """A relation between two integer expressions."""

    relation: str
    left: Integer
    right: Integer

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(condition: Condition, values: Mapping[str, int]) -> bool:
    """Evaluate a condition where every symbol has a value."""
    return RELATIONS[condition.relation](evaluate(condition.left, values), evaluate(condition.right, values))


def evaluate(expression: Integer, values: Mapping[str, int]) -> int:
    """Evaluate an expression where every symbol has a value."""
    total = 0
    for monomial, coefficient in expression.terms:
        term = coefficient
        for atom in monomial:
            term *= _evaluate_atom(atom, values)
        total += term
    return total


def substitute(expression: Integer, replacements: Mapping[str, Integer]) -> Integer:
    """Replace symbols by expressions."""
    if (name := _lone_symbol(expression)) is not None:
        return replacements.get(name, expression)
    if symbols_of(expression).isdisjoint(replacements):
        return expression
    total = ZERO
    for monomial, coefficient in expression.terms:
        total = total + coefficient * product(_substitute_atom(atom, replacements) for atom in monomial)
    return total


def replace_atoms(expression: Integer, replacements: Mapping[Integer, Integer]) -> Integer:
    """Replace quotients, remainders and maxima, each given as an expression of that one atom."""
    total = ZERO
    for monomial, coefficient in expression.terms:
        total = total + coefficient * product(replacements.get(_atom(atom), _atom(atom)) for atom in monomial)
    return total


@lru_cache(maxsize=_MOST_REMEMBERED)
def symbols_of(expression: Integer) -> frozenset[str]:
    """The names of all symbols in an expression."""
    found = frozenset[str]()
    for monomial, _ in expression.terms:
        for atom in monomial:
            if isinstance(atom, Symbol):
                found |= {atom.name}
            else:
                for part in _parts(atom):
                    found |= symbols_of(part)
    return found


@lru_cache(maxsize=_MOST_REMEMBERED)
def spell(
    expression: Integer, divide: str = "({} // {})", remainder: str = "({} % {})", maximum: str = "max({}, {})"
) -> str:
    """Write an expression as text; the templates spell what languages spell differently."""
    if not expression.terms:
        return "0"

    def spell_atom(atom: Atom) -> str:
        match atom:
            case Symbol(name):
                return name
            case Quotient(a, b):
                return divide.format(again(a), divisor(b))
            case Remainder(a, b):
                return remainder.format(again(a), divisor(b))
            case Greatest(a, b):
                return maximum.format(again(a), again(b))
            case _:
                assert_never(atom)

    def again(part: Integer) -> str:
        text = spell(part, divide, remainder, maximum)
        return f"({text})" if len(part.terms) > 1 else text

    def divisor(part: Integer) -> str:
        return f"({again(part)})" if _is_product(part) else again(part)

    def spell_term(monomial: Monomial, magnitude: int) -> str:
        factors = [spell_atom(atom) for atom in monomial]
        return "*".join(factors if factors and magnitude == 1 else [str(magnitude), *factors])

    # Positive terms first, so that text rarely begins with a minus sign.
    ordered = sorted(expression.terms, key=lambda term: term[1] < 0)
    text = "".join(
        (" - " if coefficient < 0 else " + ") + spell_term(monomial, abs(coefficient))
        for monomial, coefficient in ordered
    )
    return "-" + text[3:] if text.startswith(" - ") else text[3:]


def _is_product(expression: Integer) -> bool:
    if len(expression.terms) != 1:
        return False
    monomial, coefficient = expression.terms[0]
    return len(monomial) + (coefficient != 1) > 1


def _lone_symbol(expression: Integer) -> str | None:
    """The name, if an expression is nothing but a symbol."""
    if len(expression.terms) != 1:
        return None
    monomial, coefficient = expression.terms[0]
    if coefficient != 1 or len(monomial) != 1 or not isinstance(monomial[0], Symbol):
        return None
    return monomial[0].name


def _atom(atom: Atom) -> Integer:
    return Integer((((atom,), 1),))


def _product(left: Monomial, right: Monomial) -> Monomial:
    if not left:
        return right
    if not right:
        return left
    return tuple(sorted((*left, *right), key=_atom_key))


def _collect(terms: Sequence[tuple[Monomial, int]]) -> Integer:
    if len(terms) == 1:
        return Integer(tuple(terms)) if terms[0][1] else ZERO
    totals: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        totals[monomial] = totals.get(monomial, 0) + coefficient
    kept = [(monomial, coefficient) for monomial, coefficient in totals.items() if coefficient]
    if len(kept) > 1:
        kept.sort(key=lambda term: (-len(term[0]), tuple(map(_atom_key, term[0]))))
    return Integer(tuple(kept))


_LAST = "\U0010ffff"  # sorts behind every name


@lru_cache(maxsize=_MOST_REMEMBERED)
def _atom_key(atom: Atom) -> str:
    return atom.name if isinstance(atom, Symbol) else _LAST + spell(_atom(atom))


def _parts(atom: Quotient | Remainder | Greatest) -> tuple[Integer, Integer]:
    match atom:
        case Quotient(a, b) | Remainder(a, b) | Greatest(a, b):
            return a, b
        case _:
            assert_never(atom)


def _evaluate_atom(atom: Atom, values: Mapping[str, int]) -> int:
    match atom:
        case Symbol(name):
            return values[name]
        case Quotient(a, b):
            return evaluate(a, values) // evaluate(b, values)
        case Remainder(a, b):
            return evaluate(a, values) % evaluate(b, values)
        case Greatest(a, b):
            return max(evaluate(a, values), evaluate(b, values))
        case _:
            assert_never(atom)


def _substitute_atom(atom: Atom, replacements: Mapping[str, Integer]) -> Integer:
    match atom:
        case Symbol(name):
            return replacements[name] if name in replacements else _atom(atom)
        case Quotient(a, b):
            return substitute(a, replacements) // substitute(b, replacements)
        case Remainder(a, b):
            return substitute(a, replacements) % substitute(b, replacements)
        case Greatest(a, b):
            return greatest(substitute(a, replacements), substitute(b, replacements))
        case _:
            assert_never(atom)

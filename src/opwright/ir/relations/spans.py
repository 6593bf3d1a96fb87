"""Spans: all conditions on one sum of sizes, as an interval and the gaps in it.

a - b + 1 > 0, a - b + 1 != 1, (a - b) // 2 >= 0      come to      a - b >= 1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from opwright.ir.expressions.integer import ZERO, Condition, Integer, Quotient, Symbol
from opwright.ir.relations.bounds import Bounds

_LOWER, _UPPER = {">=": 0, ">": 1}, {"<=": 0, "<": 1}


@dataclass(frozen=True, slots=True)
class Span:
    """The values that an expression without a constant term may have.

    Attributes:
        low: Its lower bound, if any.
        high: Its upper bound, if any.
        without: Closed intervals in between that it avoids.
    """

    low: int | None = None
    high: int | None = None
    without: tuple[tuple[int, int], ...] = ()

    def both(self, other: Span) -> Span:
        """The intersection with another span."""
        return Span(_of(max, self.low, other.low), _of(min, self.high, other.high), (*self.without, *other.without))

    def narrowed(self, low: int | None) -> Span:
        """The span with `low` as a further lower bound: gaps at its ends move the ends."""
        least, greatest = _of(max, self.low, low), self.high
        without = sorted(set(self.without))
        for first, last in without:
            if least is not None and first <= least <= last:
                least = last + 1
        for first, last in reversed(without):
            if greatest is not None and first <= greatest <= last:
                greatest = first - 1
        inside = tuple(
            (first, last)
            for first, last in without
            if (least is None or last >= least) and (greatest is None or first <= greatest)
        )
        return Span(least, greatest, inside)


def span_of(condition: Condition) -> tuple[Integer, Span] | None:
    """An inequality as a span of an expression that has no constant term and begins with a positive one.

    None for an equality, and for a condition that compares two numbers.
    """
    difference, relation = condition.left - condition.right, condition.relation
    if relation == "==" or difference.constant is not None:
        return None
    if relation in _LOWER:
        return _normal(difference, Span(low=_LOWER[relation]))
    if relation in _UPPER:
        return _normal(difference, Span(high=-_UPPER[relation]))
    return _normal(difference, Span(without=((0, 0),)))


def conditions_of(form: Integer, span: Span) -> Iterator[Condition]:
    """A span as conditions, with what is subtracted on the other side."""
    if span.low is not None:
        yield _compared(form, ">=", span.low)
    if span.high is not None:
        yield _compared(form, "<=", span.high)
    for first, last in span.without:
        if first == last:
            yield _compared(form, "!=", first)
        else:
            yield Condition("!=", (form - first) // (last - first + 1), ZERO)


def implied(form: Integer, span: Span, bounds: Bounds) -> Span:
    """The part of a span that known bounds do not imply."""
    least, greatest = bounds.least_of(form), bounds.least_of(-form)
    narrow = span.narrowed(least)
    low = None if narrow.low is not None and least is not None and least >= narrow.low else narrow.low
    high = None if narrow.high is not None and greatest is not None and -greatest <= narrow.high else narrow.high
    return Span(low, high, narrow.without)


def _normal(form: Integer, span: Span) -> tuple[Integer, Span]:
    constant = next((coefficient for monomial, coefficient in form.terms if not monomial), 0)
    form, span = form - constant, _moved(span, -constant)
    factor = math.gcd(*(coefficient for _, coefficient in form.terms))
    if form.terms[0][1] < 0:
        form, span = -form, _turned(span)
    form, span = Integer(tuple((monomial, c // factor) for monomial, c in form.terms)), _divided(span, factor)
    match form.terms:
        case (((Quotient(dividend, divisor),), 1),) if (by := divisor.constant) is not None and by > 0:
            return _normal(dividend, _multiplied(span, by))
        case _:
            return form, span


def _moved(span: Span, by: int) -> Span:
    return Span(
        None if span.low is None else span.low + by,
        None if span.high is None else span.high + by,
        tuple((first + by, last + by) for first, last in span.without),
    )


def _turned(span: Span) -> Span:
    return Span(
        None if span.high is None else -span.high,
        None if span.low is None else -span.low,
        tuple((-last, -first) for first, last in span.without),
    )


def _divided(span: Span, by: int) -> Span:
    """Of `x`, where the span is of `by * x`."""
    without = ((-(-first // by), last // by) for first, last in span.without)
    return Span(
        None if span.low is None else -(-span.low // by),
        None if span.high is None else span.high // by,
        tuple((first, last) for first, last in without if first <= last),
    )


def _multiplied(span: Span, by: int) -> Span:
    """Of `x`, where the span is of `x // by`."""
    return Span(
        None if span.low is None else span.low * by,
        None if span.high is None else span.high * by + by - 1,
        tuple((first * by, last * by + by - 1) for first, last in span.without),
    )


def _compared(form: Integer, relation: str, bound: int) -> Condition:
    """`x - y >= -2` is written `x + 2 >= y`, and `x - y >= 1` is written `x > y`."""
    left = Integer(tuple(term for term in form.terms if term[1] > 0))
    right = left - form
    strict = {(">=", 1): ">", ("<=", -1): "<"}.get((relation, bound))
    if strict and right != ZERO:
        return Condition(strict, left, right)
    return (
        Condition(relation, left, right + bound)
        if bound >= 0 or right == ZERO
        else Condition(relation, left - bound, right)
    )


def _of(choose: Callable[[Iterable[int]], int], *bounds: int | None) -> int | None:
    found = [bound for bound in bounds if bound is not None]
    return choose(found) if found else None


def bounds_in(spans: Iterable[tuple[Integer, Span]]) -> Bounds:
    """The bounds that spans set."""
    found: dict[Integer, int] = {}
    for form, span in spans:
        if span.low is not None:
            found[form] = max(span.low, found.get(form, span.low))
        if span.high is not None:
            found[-form] = max(-span.high, found.get(-form, -span.high))
    return Bounds(found)


def is_size(form: Integer) -> bool:
    """Whether an expression is one symbol."""
    match form.terms:
        case (((Symbol(),), 1),):
            return True
        case _:
            return False

"""The ranges of numbers for which a trace computes what Python does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import sympy

from opwright.tracing.scalars.functions import FIRST_INTEGER, LAST_INTEGER, NUMBER_FUNCTIONS, Bounds, OutOfBounds

Ranges = Mapping[sympy.Symbol, Bounds]

_MAGNITUDES = (65504.0, *(2.0**exponent for exponent in range(63, -1, -1)))  # float16 holds the first


def bounds_of(expression: Any, ranges: Ranges) -> Bounds:
    """The bounds of an expression, within which a kernel computes what Python does.

    Raises:
        OutOfBounds: If it does not for some numbers.
    """
    if expression in ranges:
        return ranges[expression]
    if expression.is_Integer or expression.is_Float:
        value = int(expression) if expression.is_Integer else float(expression)
        return Bounds(value, value)
    function = NUMBER_FUNCTIONS.get(type(expression).__name__)
    if function is None:
        raise OutOfBounds
    first, *rest = (bounds_of(argument, ranges) for argument in expression.args)
    if not rest:
        return function.bound(first).checked()
    return reduce(lambda left, right: function.bound(left, right).checked(), rest, first)


def magnitudes(values: Mapping[sympy.Symbol, float], most: float, holds: Callable[[Ranges], bool]) -> Ranges | None:
    """Ranges around zero with the floats of a call in which a condition holds: equal first, then each widened.

    Args:
        values: The floats of the call.
        most: The largest allowed magnitude.
        holds: Whether the condition holds everywhere in given ranges; then it holds in narrower ones.

    Returns:
        None if it does not hold up to the floats of the call.
    """
    ranges: Ranges = {symbol: Bounds.around(value, -value) for symbol, value in values.items()}
    if not holds(ranges):
        return None
    for symbols in (list(values), *([symbol] for symbol in values)):
        for magnitude in (most, *_MAGNITUDES):
            wider = {s: Bounds(-magnitude, magnitude) for s in symbols if magnitude >= ranges[s].high}
            if len(wider) == len(symbols) and holds({**ranges, **wider}):
                ranges = {**ranges, **wider}
                break
    return ranges


def widest(given: Ranges, holds: Callable[[Ranges], bool]) -> Ranges:
    """Ranges around the integers of a call in which a condition holds: equally wide first, then each widened.

    Args:
        given: The integers of the call, in which it holds.
        holds: Whether the condition holds everywhere in given ranges; then it holds in narrower ones.
    """
    ranges = dict(given)
    for symbols in (list(given), *([symbol] for symbol in given)) if given else ():
        for direction in (1, -1):
            ranges = _extended(ranges, symbols, direction, holds)
    return ranges


def _extended(
    ranges: dict[sympy.Symbol, Bounds], symbols: list[sympy.Symbol], direction: int, holds: Callable[[Ranges], bool]
) -> dict[sympy.Symbol, Bounds]:
    def moved(distance: int) -> dict[sympy.Symbol, Bounds]:
        return ranges | {symbol: _moved(ranges[symbol], direction * distance) for symbol in symbols}

    least, most = 0, LAST_INTEGER - FIRST_INTEGER
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if holds(moved(middle)) else (least, middle - 1)
    return moved(least)


def _moved(bounds: Bounds, distance: int) -> Bounds:
    if distance < 0:
        return Bounds(max(bounds.low + distance, FIRST_INTEGER), bounds.high)
    return Bounds(bounds.low, min(bounds.high + distance, LAST_INTEGER))

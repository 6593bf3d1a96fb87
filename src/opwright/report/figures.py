"""Format numbers for readers; a missing one is a dash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MISSING = "–"
_WAYS = ("forward", "training")
_SEEN, _UNSTEADY = 0.05, 0.3  # parts of the median
_KILO = 1000
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def microseconds(value: float | None) -> str:
    """Write a time in microseconds with three significant figures."""
    if value is None:
        return MISSING
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{decimals}f}"


def median_and_spread(timing: Mapping[str, Any] | None) -> str:
    """Write the median of a time, and, where that is seen, how far the quartiles lie from it, as in "12.3 ±14%"."""
    if timing is None:
        return MISSING
    part = _spread(timing) / 2
    return microseconds(timing["median_us"]) + (f" ±{part:.0%}" if part >= _SEEN else "")


def unsteady(entries: Sequence[Mapping[str, Any]]) -> str:
    """Warn of times that vary as they do on a busy machine; an empty text where none does."""
    widest = max((_spread(each[way]) for each in entries for way in _WAYS if each[way]), default=0.0)
    if widest < _UNSTEADY:
        return ""
    return (
        f"warning: the middle half of the measurements of one time lies within {widest:.0%} of its median, as on a "
        "busy machine: measure again when it is quiet"
    )


def _spread(timing: Mapping[str, Any]) -> float:
    return float((timing["high_us"] - timing["low_us"]) / timing["median_us"]) if timing["median_us"] else 0.0


def ratio(value: float | None) -> str:
    """Write a speed-up."""
    return MISSING if value is None else f"{value:.2f}×"


def error(value: float | None) -> str:
    """Write a relative error."""
    if value is None:
        return MISSING
    return "0" if value == 0 else f"{value:.1e}"


def error_beside(own: float | None, eager: float | None) -> str:
    """Write an error, followed by eager's."""
    return MISSING if own is None else f"{error(own)} ({error(eager)})"


def in_units(size_bytes: int) -> str:
    """Write a number of bytes with three significant figures."""
    size, unit = float(size_bytes), 0
    while size >= _KILO and unit < len(_UNITS) - 1:
        size, unit = size / _KILO, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"

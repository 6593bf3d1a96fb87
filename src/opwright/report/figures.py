"""Format numbers for readers; a missing one is a dash."""

from __future__ import annotations

MISSING = "–"
_KILO = 1000
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def microseconds(value: float | None) -> str:
    """Write a time in microseconds with three significant figures."""
    if value is None:
        return MISSING
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{decimals}f}"


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

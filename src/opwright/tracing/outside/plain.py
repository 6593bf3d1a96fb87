"""Plain values: immutable ones, and when two of them are the same."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import pathlib
import re
import uuid
from collections.abc import Iterable
from typing import Any

import numpy
import torch

from opwright.ir.expressions.exact import exact

_PLAIN: tuple[type, ...] = (
    *(int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented), range),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size),
    *(fractions.Fraction, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta, datetime.timezone),
    *(uuid.UUID, pathlib.PurePath, re.Pattern, numpy.generic, numpy.dtype),
)
_TOLD_BY_BITS = (float, complex)  # -0.0 is not 0.0, a NaN is itself, and not -NaN
# As text 1.0 is not 1.00, and one moment in two time zones is two.
_TOLD_BY_TEXT = (decimal.Decimal, range, datetime.date, datetime.time)
# A class that a user makes by `exec` in an empty namespace says that it is of "builtins", too.
_HOMES = frozenset({kind.__module__.partition(".")[0] for kind in _PLAIN}) - {"builtins"}


def is_plain(value: object) -> bool:
    """Whether a value is deeply immutable.

    A value of a user's subclass is not plain: it has attributes, and methods that may read anything.
    """
    kind = type(value)  # also where an object gives another class, as proxies do
    if type(value) is tuple or type(value) is frozenset:
        return all(map(is_plain, value))
    if type(value) is slice:
        return is_plain(value.start) and is_plain(value.stop) and is_plain(value.step)
    if not issubclass(kind, _PLAIN) or issubclass(kind, enum.Enum) or _may_change(value):
        return False
    return kind in _PLAIN or _is_as_its_base(kind)


def _may_change(value: object) -> bool:
    """Whether a value of a plain type is mutable after all, or holds a mutable object."""
    match value:
        case pathlib.Path():
            return True  # it can read the file
        case numpy.void():
            return True  # its fields can be set
        case numpy.dtype():
            return value.kind in "VT" or value.metadata is not None  # names of fields, and any objects
        case datetime.datetime() | datetime.time():
            return not isinstance(value.tzinfo, (type(None), datetime.timezone))
    return False


def _is_as_its_base(kind: type) -> bool:
    """Whether a subclass of a plain type belongs to the same library and has no attributes."""
    return kind.__module__.partition(".")[0] in _HOMES and not kind.__dictoffset__


def computes_in_decimal(value: object) -> bool:
    """Whether arithmetic with a plain value, or a class, depends on Python's settings for decimal numbers."""
    if isinstance(value, tuple):
        return any(map(computes_in_decimal, value))
    return value is decimal.Decimal or isinstance(value, decimal.Decimal)


def decimal_settings(_: object) -> tuple[Any, ...]:
    """Python's settings for decimal numbers."""
    now = decimal.getcontext()
    return (now.prec, now.rounding, now.Emin, now.Emax, now.clamp)


def are_same(left: Any, right: Any) -> bool:
    """Whether two plain values are the same: of one type, equal, and 0.0 is not -0.0."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, _TOLD_BY_BITS):
        return exact(left) == exact(right)
    if isinstance(left, _TOLD_BY_TEXT):
        return repr(left) == repr(right)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(are_same, left, right))
    if isinstance(left, slice):
        return are_same(_parts(left), _parts(right))
    if isinstance(left, frozenset):
        return are_same(tuple(left), tuple(right))  # equal sets may iterate in different orders
    if isinstance(left, numpy.generic):
        return bool(left.dtype == right.dtype and left.tobytes() == right.tobytes())
    return bool(left == right)


def spelled(value: Any) -> str:
    """A plain value as text, different for different values."""
    if isinstance(value, tuple):
        return f"{type(value).__name__}({', '.join(map(spelled, value))})"
    if isinstance(value, frozenset):
        return f"frozenset({', '.join(map(spelled, value))})"
    if isinstance(value, slice):
        return f"slice {spelled(_parts(value))}"
    if isinstance(value, numpy.generic):
        return f"{value.dtype} {value.tobytes().hex()}"
    return f"{type(value).__name__} {_text(value)}"


def spelled_in_any_order(values: Iterable[Any]) -> str:
    """The members of a set as text: the same in every process, although iteration order varies."""
    return f"any of {', '.join(sorted(map(spelled, values)))}"


def _text(value: Any) -> str:
    if isinstance(value, _TOLD_BY_BITS):
        return f"{exact(value)}"
    if isinstance(value, int):
        return hex(value)  # Python refuses to write thousands of digits
    if isinstance(value, re.Pattern):
        return f"{value.pattern!r} {value.flags}"  # its own text ends after 200 characters
    return repr(value)


def _parts(value: slice) -> tuple[Any, Any, Any]:
    return value.start, value.stop, value.step

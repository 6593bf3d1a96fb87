"""Plain values: those that never change themselves, and how two of them are told apart."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import pathlib
import re
import types
import uuid
from typing import Any

import numpy
import torch

from opwright.ir.expressions.exact import exact

_PLAIN: tuple[type, ...] = (
    *(int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented), range),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, types.CodeType),
    *(fractions.Fraction, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta, datetime.timezone),
    *(uuid.UUID, pathlib.PurePath, re.Pattern, numpy.generic, numpy.dtype),
)
_TOLD_BY_BITS = (float, complex)  # -0.0 is not 0.0, a NaN is itself, and not -NaN
# As text 1.0 is not 1.00, and one moment in two time zones is two.
_TOLD_BY_TEXT = (decimal.Decimal, range, datetime.date, datetime.time)
_HOMES = frozenset({kind.__module__.partition(".")[0] for kind in _PLAIN})


def is_plain(value: object) -> bool:
    """Whether a value never changes, and neither does what is in it.

    One of a class that a user made from such a type may: it has attributes, and methods that read what they like.
    """
    if isinstance(value, (tuple, frozenset)) and type(value) in (tuple, frozenset):
        return all(map(is_plain, value))
    if isinstance(value, slice):
        return is_plain(value.start) and is_plain(value.stop) and is_plain(value.step)
    if isinstance(value, pathlib.Path):
        return False  # it can be asked what is in the file
    if not isinstance(value, _PLAIN) or isinstance(value, enum.Enum):
        return False
    return type(value) in _PLAIN or type(value).__module__.partition(".")[0] in _HOMES


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
    if isinstance(left, frozenset):
        return len(left) == len(right) and sorted(map(spelled, left)) == sorted(map(spelled, right))
    if isinstance(left, numpy.generic):
        return bool(left.dtype == right.dtype and left.tobytes() == right.tobytes())
    return bool(left == right)


def spelled(value: Any) -> str:
    """A plain value as text: another text for every other value."""
    if isinstance(value, tuple):
        return f"{type(value).__name__}({', '.join(map(spelled, value))})"
    if isinstance(value, frozenset):
        return f"frozenset({', '.join(sorted(map(spelled, value)))})"
    if isinstance(value, numpy.generic):
        return f"{value.dtype} {value.tobytes().hex()}"
    return f"{type(value).__name__} {exact(value) if isinstance(value, _TOLD_BY_BITS) else value!r}"

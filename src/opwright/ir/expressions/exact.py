"""Tell Python values apart where `==` does not: 1 from True and 1.0, 0.0 from −0.0, NaN from −NaN."""

from __future__ import annotations

import struct
from collections.abc import Hashable


def exact(value: Hashable) -> Hashable:
    """A key that is the same for two values only if they have the same type and, as floats, the same bits."""
    match value:
        case float():
            return type(value), struct.pack("<d", value)
        case complex():
            return type(value), struct.pack("<2d", value.real, value.imag)
        case _:
            return type(value), value

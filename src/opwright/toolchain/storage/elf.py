"""Whether a shared library is complete: a compiler may report success on a full disk."""

from __future__ import annotations

import struct
from pathlib import Path

# The header of a 64-bit ELF file: where the table of sections starts, which linkers write last, and how long it is.
_MAGIC = b"\x7fELF\x02"
_HEADER_BYTES = 64
_TABLE = struct.Struct("<40xQ10xHH2x")


def is_whole_library(path: Path) -> bool:
    """Whether a file is an ELF file and none of it is missing."""
    try:
        size_bytes = path.stat().st_size
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError:
        return False
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        return False
    start, entry_bytes, entries = _TABLE.unpack(header)
    return bool(entries) and start + entries * entry_bytes <= size_bytes

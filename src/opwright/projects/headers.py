"""The C++ headers that sources use, and what these include in turn, to stand beside the sources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from opwright.toolchain.recipe import INCLUDE_DIRECTORY
from opwright.version import VERSION

LICENCE = "LICENSE"
_FOLDER = "opwright"
_ALL = "kernel.h"  # includes all others
_POOL = "pool.h"
_INCLUDE = re.compile(r'^#include "opwright/(\w+\.h)"\n', re.MULTILINE)
# What a header defines: functions, types and constants, on lines that are not indented.
_DEFINED = re.compile(
    r"^(?:struct|class|using|enum class) (\w+)|^#define (\w+)"
    r"|^(?:OPWRIGHT_INLINE|inline|constexpr|static) [^(=]*?(\w+)[({\[ ]*[(=]",
    re.MULTILINE,
)
_WORD = re.compile(r"[A-Za-z_]\w+")
# Functions of numbers under the names that others have for real ones.
_TOLD_BY = {name: frozenset({"Complex"}) for name in ("complex.h", "complex_arithmetic.h")}
_POOL_LINES = re.compile(r"#if(?:def OPWRIGHT_POOL| defined\(OPWRIGHT_POOL\))[^\n]*\n.*?#endif\n", re.DOTALL)


def headers_for(source: str) -> tuple[str, ...]:
    """Name the headers that define something that a source says, without those that others of them include."""
    said = set(_WORD.findall(source))
    needed = [name for name in _headers() if name not in (_ALL, _POOL) and said & _defined_in(name)]
    included = {inner for name in needed for inner in _closure(name) if inner != name}
    return tuple(name for name in needed if name not in included)


def vendored(names: tuple[str, ...]) -> Mapping[str, str]:
    """Headers, those that they include, and their licence, by path.

    Memory comes from torch alone: opwright's pool, which is one for all libraries of a process, belongs to one version.
    """
    wanted = sorted({inner for name in names for inner in _closure(name)} - {_POOL})
    line = f"// From opwright {VERSION}; BSD 3-Clause, see {LICENCE} in this folder.\n"
    files = {f"{_FOLDER}/{name}": line + _without_pool(_headers()[name]) for name in wanted}
    return {f"{_FOLDER}/{LICENCE}": (INCLUDE_DIRECTORY / _FOLDER / LICENCE).read_text(encoding="utf-8"), **files}


@cache
def _headers() -> Mapping[str, str]:
    return {
        path.name: path.read_text(encoding="utf-8") for path in sorted(Path(INCLUDE_DIRECTORY).glob("opwright/*.h"))
    }


def _closure(name: str) -> set[str]:
    found, waiting = set(), [name]
    while waiting:
        header = waiting.pop()
        if header not in found:
            found.add(header)
            waiting += _INCLUDE.findall(_headers()[header])
    return found


@cache
def _defined_in(name: str) -> frozenset[str]:
    found = _DEFINED.findall(_headers()[name])
    return _TOLD_BY.get(name) or frozenset(word for words in found for word in words if word)


def _without_pool(text: str) -> str:
    return _POOL_LINES.sub("", text).replace(f'#include "{_FOLDER}/{_POOL}"\n', "")

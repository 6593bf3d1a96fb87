"""The C++ headers of a project: those that its sources use, and those that they include."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opwright.toolchain.recipe import INCLUDE_DIRECTORY
from opwright.version import VERSION

LICENCE = "LICENSE"
_FOLDER = "opwright"
_ALL = "kernel.h"  # includes all others
_POOL = "pool.h"
_DEPLOYED = frozenset({"deployed.h", "reference.h"})  # of deployed libraries, against libtorch of one version
_INCLUDE = re.compile(r'^#include "opwright/([\w/]+\.h)"\n', re.MULTILINE)
# The definitions of a header: functions, types and constants, on lines that are not indented.
_DEFINED = re.compile(
    r"^(?:struct|class|using|enum class) (\w+)|^#define (\w+)"
    r"|^(?:OPWRIGHT_INLINE|inline|constexpr|static) [^(=]*?(\w+)[({\[ ]*[(=]",
    re.MULTILINE,
)
_WORD = re.compile(r"[A-Za-z_]\w+")
# These headers overload functions of real numbers, so only the name Complex shows that a source needs them.
_TOLD_BY = {name: frozenset({"Complex"}) for name in ("complex.h", "complex_arithmetic.h")}
# The macros that are never and always defined in projects.
_BUILT_WITH = {
    "OPWRIGHT_POOL": False,
    "OPWRIGHT_CUDA_ON_HOST": False,
    "OPWRIGHT_CUDA_RUNTIME": True,
    "OPWRIGHT_APART": False,
    "OPWRIGHT_WALKS_APART": False,
}
_ASKED = re.compile(r"#(?:if|elif) defined\((\w+)\)|#if(n?)def (\w+)")


def headers_for(source: str) -> tuple[str, ...]:
    """Find the headers that define a name used in a source, without those that another of them includes."""
    said = set(_WORD.findall(source))
    needed = [name for name in _headers() if _is_for_cpp(name) and said & _defined_in(name)]
    included = {inner for name in needed for inner in _closure(name) if inner != name}
    return tuple(name for name in needed if name not in included)


def vendored(names: tuple[str, ...]) -> Mapping[str, str]:
    """Headers, those that they include, and their licence, by path.

    Projects allocate memory through torch only: opwright's pool is shared by all libraries of a process, and belongs to
    one version of opwright.
    """
    wanted = sorted({inner for name in names for inner in _closure(name)})
    line = f"// From opwright {VERSION}; BSD 3-Clause, see opwright/{LICENCE}.\n"
    files = {f"{_FOLDER}/{name}": line + _headers()[name] for name in wanted}
    return {f"{_FOLDER}/{LICENCE}": (INCLUDE_DIRECTORY / _FOLDER / LICENCE).read_text(encoding="utf-8"), **files}


def _is_for_cpp(name: str) -> bool:
    return "/" not in name and name not in _DEPLOYED | {_ALL, _POOL}


@cache
def _headers() -> Mapping[str, str]:
    """All headers as they are in projects, by path."""
    folder = Path(INCLUDE_DIRECTORY) / _FOLDER
    paths = sorted(folder.rglob("*.h"))
    return {str(path.relative_to(folder)): settled(path.read_text(encoding="utf-8"), _BUILT_WITH) for path in paths}


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


def settled(text: str, known: Mapping[str, bool]) -> str:
    """Evaluate the `#if`s of a header that test known macros, and keep the lines that hold.

    Args:
        text: The header; each test of a macro is alone, or the first of several joined by `&&`.
        known: Whether a macro is defined.
    """
    lines: list[str] = []
    open_questions: list[_Answered | None] = []  # the `#if`s around a line; None for one that the compiler evaluates
    for line in text.splitlines(keepends=True):
        if line.startswith("#if"):
            open_questions.append(_Answered.of(line, known))
            answered = open_questions[-1]
        elif line.startswith(("#elif", "#else")):
            answered = open_questions[-1]
            open_questions[-1] = answered and answered.otherwise(line, known)
        elif line.startswith("#endif"):
            answered = open_questions.pop()
        else:
            answered = None
        if answered is None and all(question is None or question.holds for question in open_questions):
            lines.append(line)
    return "".join(lines).replace("\n\n\n", "\n\n").replace(f'#include "{_FOLDER}/{_POOL}"\n', "")


@dataclass(frozen=True, slots=True)
class _Answered:
    """An `#if` of a known macro: whether this branch holds, and whether it or an earlier branch did."""

    holds: bool
    held: bool

    @classmethod
    def of(cls, line: str, known: Mapping[str, bool]) -> _Answered | None:
        question = _ASKED.match(line)
        name = (question[1] or question[3]) if question else ""
        if question is None or name not in known:
            return None
        holds = known[name] != bool(question[2])
        return cls(holds, holds)

    def otherwise(self, line: str, known: Mapping[str, bool]) -> _Answered:
        asked = self.of(line, known) if line.startswith("#elif") else _Answered(True, True)
        assert asked is not None
        return _Answered(asked.holds and not self.held, self.held or asked.holds)

"""From compiler output to one sentence: the first error, and its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from opwright.errors import BuildFailed, Place

# How g++, clang++ and NVRTC, and how nvcc, write an error; and what a linker says.
_ERRORS = (
    re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? (?:fatal |catastrophic )?error: (?P<message>.+)$"),
    re.compile(r"^(?P<file>\S.*?)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<message>.+)$"),
)
_LINKER = re.compile(
    r"(?P<message>[Uu]ndefined reference to .+|cannot find -l[^\s:]+|cannot find \S+: No such file.*"
    r"|multiple definition of [^;]+|Unresolved extern .+)"
)
_NO_HEADER = re.compile(
    r"(\S+): No such file or directory|'([^']+)' file not found|cannot open source file \"([^\"]+)\""
)
_NOISE = re.compile(r"\(.text\S*\)|^\S*\bld: |^collect2|^In file included|^\s+from ")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The first thing that went wrong.

    Attributes:
        message: The compiler's message.
        place: Its place; None if there is none.
        more: How many further errors there are.
        hint: A remedy that follows from the message; None without one.
        header: The name of a header that was not found; empty otherwise.
    """

    message: str
    place: Place | None
    more: int
    hint: str | None
    header: str = ""


def diagnose(transcript: str) -> Diagnosis:
    """Find the first error in what a compiler or a linker printed."""
    found = [match for line in transcript.splitlines() if (match := _error_in(line))]
    if found:
        first = found[0]
        message = first["message"].strip()
        header = _missing_header(message)
        remedy = _remedy(header) if header else None
        return Diagnosis(message, Place(first["file"], int(first["line"])), len(found) - 1, remedy, header)
    complaints = [match["message"] for line in transcript.splitlines() if (match := _LINKER.search(line))]
    if complaints:
        return Diagnosis(complaints[0].strip(), None, len(set(complaints)) - 1, _remedy_of_linker(complaints[0]))
    lines = [line.strip() for line in transcript.splitlines() if line.strip() and not _NOISE.search(line)]
    return Diagnosis(lines[0] if lines else "the compiler says nothing", None, max(0, len(lines) - 1), None)


def _error_in(line: str) -> re.Match[str] | None:
    return next((match for pattern in _ERRORS if (match := pattern.match(line))), None)


def _missing_header(message: str) -> str:
    missing = _NO_HEADER.search(message)
    return next(name for name in missing.groups() if name) if missing else ""


def _remedy(header: str) -> str:
    if header == "Python.h":
        return "install Python's headers (the package python3-dev)"
    return f"name the folder of {header} in extra_include_paths"


def _remedy_of_linker(message: str) -> str:
    if message.startswith("cannot find -l"):
        return f"name the folder of lib{message.removeprefix('cannot find -l')} with extra_ldflags=['-L…']"
    if message.startswith("Unresolved extern"):
        return "device code that calls that of another source is linked with extra_cuda_cflags=['-rdc=true']"
    if message.startswith("multiple definition"):
        return "two sources define it; make one a declaration, or both static"
    return "add the source that defines it, or its library to extra_ldflags"


@contextmanager
def at_the_authors_line() -> Iterator[None]:
    """Let a BuildFailed name the line of the first error instead of the file that was kept of the build."""
    try:
        yield
    except BuildFailed as failure:
        raise located(failure) from None


def located(failure: BuildFailed) -> BuildFailed:
    """The same failure as one message about a line, if the compiler named one."""
    transcript = "\n".join(line.removeprefix("  ") for line in failure.fact.splitlines())
    found = diagnose(transcript)
    if found.place is None:
        return failure
    if not found.header:
        return BuildFailed(found.message, place=found.place, hint=failure.hint)
    hint = 'name its folder: include_directories=["folder"]'
    return BuildFailed(f"the header {found.header} was not found", place=found.place, hint=hint)

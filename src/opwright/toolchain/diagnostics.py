"""What a compiler says of a source: its first error, with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from opwright.errors import BuildFailed, Place

_ERROR = re.compile(
    r"^\s*(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:fatal |catastrophic )?error: (?P<text>[^\n]+)", re.MULTILINE
)
_NO_HEADER = re.compile(
    r"(?P<gcc>[^\s:]+): No such file or directory"
    r"|'(?P<clang>[^']+)' file not found"
    r'|cannot open source file "(?P<nvrtc>[^"]+)"'
)


@contextmanager
def at_the_authors_line() -> Iterator[None]:
    """Let a BuildFailed name the line of the first error instead of the file that was kept of the build."""
    try:
        yield
    except BuildFailed as failure:
        raise located(failure) from None


def located(failure: BuildFailed) -> BuildFailed:
    """The same failure as one message about a line, if the compiler named one."""
    found = _ERROR.search(failure.fact)
    if found is None:
        return failure
    missing = _NO_HEADER.search(found["text"])
    if missing is None:
        return BuildFailed(found["text"], place=Place(found["file"].strip(), int(found["line"])), hint=failure.hint)
    return BuildFailed(
        f"the header {next(name for name in missing.groups() if name)} was not found",
        place=Place(found["file"].strip(), int(found["line"])),
        hint='name its folder: include_directories=["folder"]',
    )

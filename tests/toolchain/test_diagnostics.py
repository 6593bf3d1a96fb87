"""The first error of a compiler as one message about a line."""

from __future__ import annotations

import pytest

from opwright.errors import BuildFailed, Place
from opwright.toolchain.diagnostics import at_the_authors_line, located

# what a compiler printed → place, fact, the beginning of the hint
TRANSCRIPTS = {
    "g++": (
        "a.cpp: In function 'void f()':\n  a.cpp:3:5: error: 'u' was not declared",
        ("a.cpp", 3),
        "'u' was not declared",
        "see",
    ),
    "clang++": ("b/a.cpp:7:1: error: expected ';'", ("b/a.cpp", 7), "expected ';'", "see"),
    "nvrtc": ('a.cu:4: error: identifier "v" is undefined', ("a.cu", 4), 'identifier "v" is undefined', "see"),
    "header, g++": (
        "a.cpp:2:10: fatal error: no.h: No such file or directory",
        ("a.cpp", 2),
        "the header no.h was not found",
        "name its folder",
    ),
    "header, clang++": (
        "a.cpp:2:10: fatal error: 'no.h' file not found",
        ("a.cpp", 2),
        "the header no.h was not found",
        "name",
    ),
    "header, nvrtc": (
        'a.cu:1: catastrophic error: cannot open source file "no.h"',
        ("a.cu", 1),
        "the header no.h was not found",
        "name",
    ),
}


@pytest.mark.parametrize("compiler", TRANSCRIPTS)
def test_the_line_is_found(compiler: str) -> None:
    transcript, place, fact, hint = TRANSCRIPTS[compiler]
    found = located(BuildFailed(f"compiling kept.cpp failed\n  {transcript}", hint="see it again with: g++"))
    assert (found.place, found.fact) == (Place(*place), fact)
    assert (found.hint or "").startswith(hint)


def test_a_failure_without_a_line_stays_as_it_is() -> None:
    failure = BuildFailed("compiling kept.cpp took too long and was stopped")
    with pytest.raises(BuildFailed) as again, at_the_authors_line():
        raise failure
    assert again.value is failure

from __future__ import annotations

import pytest

from opwright.errors import Place
from opwright.toolchain.diagnostics import Diagnosis, diagnose

HEADER_HINT = "name the folder of {} in extra_include_paths"
TRANSCRIPTS: dict[str, tuple[str, Diagnosis]] = {
    "g++": (
        "In file included from /p/a.cpp:1:\n/p/b.h: In function 'int f()':\n"
        "/p/b.h:3:10: warning: unused\n/p/b.h:4:12: error: expected ';'\n    4 | x\n/p/a.cpp:9:1: error: more\n",
        Diagnosis("expected ';'", Place("/p/b.h", 4), 1, None),
    ),
    "clang": (
        "/p/a.cpp:4:2: error: use of undeclared identifier 'x'\n1 error generated.\n",
        Diagnosis("use of undeclared identifier 'x'", Place("/p/a.cpp", 4), 0, None),
    ),
    "fatal": (
        "a.cpp:1:10: fatal error: x/y.h: No such file or directory\ncompilation terminated.\n",
        Diagnosis("x/y.h: No such file or directory", Place("a.cpp", 1), 0, HEADER_HINT.format("x/y.h"), "x/y.h"),
    ),
    "clang header": (
        "a.cpp:1:10: fatal error: 'y.h' file not found\n",
        Diagnosis("'y.h' file not found", Place("a.cpp", 1), 0, HEADER_HINT.format("y.h"), "y.h"),
    ),
    "python": (
        "a.cpp:1:10: fatal error: Python.h: No such file or directory\n",
        Diagnosis(
            "Python.h: No such file or directory",
            Place("a.cpp", 1),
            0,
            "install Python's headers (the package python3-dev)",
            "Python.h",
        ),
    ),
    "nvcc": (
        '/p/k.cu(12): error: identifier "x" is undefined\n\n1 error detected in the compilation of "/p/k.cu".\n',
        Diagnosis('identifier "x" is undefined', Place("/p/k.cu", 12), 0, None),
    ),
    "nvcc number": (
        "/p/k.cu(12): error #20-D: no such thing\n",
        Diagnosis("no such thing", Place("/p/k.cu", 12), 0, None),
    ),
    "ptxas": (
        "ptxas fatal   : Unresolved extern function '_Z1fv'\n",
        Diagnosis(
            "Unresolved extern function '_Z1fv'",
            None,
            0,
            "device code that calls that of another source is linked with extra_cuda_cflags=['-rdc=true']",
        ),
    ),
    "ld": (
        "/usr/bin/ld: a.o: in function `main':\na.cpp:(.text+0x5): undefined reference to `g()'\n"
        "/usr/bin/ld: a.cpp:(.text+0x9): undefined reference to `g()'\ncollect2: error: ld returned 1 exit status\n",
        Diagnosis(
            "undefined reference to `g()'", None, 0, "add the source that defines it, or its library to extra_ldflags"
        ),
    ),
    "unknown flag": (
        "g++: error: unrecognized command-line option '-fnonsense'\n",
        Diagnosis("g++: error: unrecognized command-line option '-fnonsense'", None, 0, None),
    ),
    "nothing": ("\n", Diagnosis("the compiler says nothing", None, 0, None)),
}


@pytest.mark.parametrize(("transcript", "diagnosis"), TRANSCRIPTS.values(), ids=TRANSCRIPTS)
def test_the_first_error_is_found(transcript: str, diagnosis: Diagnosis) -> None:
    assert diagnose(transcript) == diagnosis

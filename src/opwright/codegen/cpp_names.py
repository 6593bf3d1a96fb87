"""What names may be in C++ and CUDA."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from opwright.codegen.allocator import Language
from opwright.ir.identifiers import ascii_spelling

# ISO C++23, [lex.key], with the alternative tokens of [lex.digraph]; and the words that are keywords of compilers.
_KEYWORDS_FILE = Path(__file__).with_name("cpp_keywords.txt")
MACROS_FILE = Path(__file__).with_name("cpp_macros.txt")


@cache
def reserved() -> frozenset[str]:
    """Keywords, and the macros of compilers and of all headers that emitted sources include, also of the system's.

    tests/codegen/test_cpp_names.py asks the compiler for them, and `pytest --update-golden` writes the file.
    """
    return frozenset(
        word for file in (_KEYWORDS_FILE, MACROS_FILE) for word in file.read_text(encoding="ascii").split()
    )


def spelling(name: str) -> str:
    """An identifier that is not the compiler's: those begin with an underscore, or have two together."""
    return re.sub("__+", "_", ascii_spelling(name)).strip("_") or "unnamed"


CPP = Language(
    reserved=reserved,
    ignored=re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"|^#[^\n]*', re.MULTILINE),
    spelling=spelling,
)

"""The rules for names in C++ and CUDA."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from opwright.codegen.allocator import Language
from opwright.ir.names.identifiers import unreserved_spelling
from opwright.ir.names.schema_words import schema_words

# ISO C++23, [lex.key], with the alternative tokens of [lex.digraph]; and the words that are keywords of compilers.
_KEYWORDS_FILE = Path(__file__).with_name("keywords.txt")
MACROS_FILE = Path(__file__).with_name("macros.txt")


@cache
def reserved() -> frozenset[str]:
    """Keywords, the macros of compilers and of all included headers, and the words that schemas reserve.

    tests/codegen/cpp/test_names.py asks the compiler and torch for them; `pytest --update-golden` writes the files.
    """
    return _words(_KEYWORDS_FILE) | _words(MACROS_FILE) | schema_words()


def _words(file: Path) -> frozenset[str]:
    return frozenset(file.read_text(encoding="ascii").split())


def spelling(name: str) -> str:
    """An identifier that is not reserved: no underscore in front, nor two in a row."""
    return re.sub("__+", "_", unreserved_spelling(name))


CPP = Language(
    reserved=reserved,
    ignored=re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"|^#[^\n]*', re.MULTILINE),
    spelling=spelling,
)

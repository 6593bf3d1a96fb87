"""Words that cannot name a parameter in a schema of torch."""

from __future__ import annotations

from functools import cache
from pathlib import Path

SCHEMA_WORDS_FILE = Path(__file__).with_suffix(".txt")


@cache
def schema_words() -> frozenset[str]:
    """The reserved words of torch's schema lexer; tests/codegen/cpp/test_names.py finds them."""
    return frozenset(SCHEMA_WORDS_FILE.read_text(encoding="ascii").split())

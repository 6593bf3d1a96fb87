"""Placeholders for the names of a Program in unfinished text.

An emitter writes a draft in which every name of the Program is a placeholder, `ᐊxᐅ`, and so is every word derived from
one, `ᐊxᐅ_sizes` or `ᐊgrad_xᐅ`: these words never conflict with each other or with the emitter's own words. When all
text of a scope is written, its allocator (allocator.py) gives each placeholder a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from opwright.errors import InternalError, NoKernel
from opwright.ir.names.renaming import rename
from opwright.ir.program import Program

# Letters, so that a placeholder is an identifier of Python; names in sources are ASCII (ir/names/identifiers.py).
_OPENING, _CLOSING = "ᐊ", "ᐅ"
# All begin with the mark: to look for words with a mark inside would take thirty times as long.
PLACEHOLDER = re.compile(rf"{_OPENING}\w*")
_MARKS = str.maketrans("", "", _OPENING + _CLOSING)


def placeholder(name: str) -> str:
    """The placeholder for a name of a Program."""
    return f"{_OPENING}{name}{_CLOSING}"


def prefixed(prefix: str, name: str) -> str:
    """The word that is derived from a name, or from a placeholder, by a prefix."""
    opening = _OPENING if name.startswith(_OPENING) else ""
    return f"{opening}{prefix}{name.removeprefix(opening)}"


def plain(text: str) -> str:
    """Text with every placeholder replaced by its wanted name."""
    return text.translate(_MARKS)


def columns(draft: str) -> int:
    """The width of a draft with its wanted names."""
    return len(draft) - draft.count(_OPENING) - draft.count(_CLOSING)


def without_names(draft: str, name: str) -> str:
    """A draft of functions without comments, with numbers for its placeholders and for the name of the functions.

    Functions do the same if these are equal.
    """
    code = "\n".join(line for line in draft.split("\n") if not line.startswith("//")).replace(name, _OPENING)
    numbers: dict[str, str] = {}
    return PLACEHOLDER.sub(lambda found: numbers.setdefault(found[0], f"{_OPENING}{len(numbers)}"), code)


def with_placeholders(program: Program) -> Program:
    """A Program with placeholders for all names except its own."""
    return rename(program, placeholder)


@contextmanager
def plain_refusals() -> Iterator[None]:
    """Let refusals that come from a draft use the Program's own names."""
    try:
        yield
    except NoKernel as refusal:
        refusal.fact = plain(refusal.fact)
        refusal.args = (str(refusal),)
        raise
    except InternalError as error:
        raise InternalError(plain(str(error))) from error

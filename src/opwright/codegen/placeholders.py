"""Placeholders: what stands for the names of a Program in text that is not finished.

An emitter writes a draft. In it every name of the Program is a placeholder, `ᐊxᐅ`, and so is every word that it makes
of one, such as `ᐊxᐅ_sizes`: whatever the Program's names are, no two of these words meet each other or a word of the
emitter's own. When all that a scope can see is written, its allocator (allocator.py) gives each placeholder a name.
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
PLACEHOLDER = re.compile(rf"\w*{_OPENING}\w*")
_MARKS = str.maketrans("", "", _OPENING + _CLOSING)


def placeholder(name: str) -> str:
    """What stands for a name of a Program."""
    return f"{_OPENING}{name}{_CLOSING}"


def plain(text: str) -> str:
    """Text with every placeholder as the name that it would like."""
    return text.translate(_MARKS)


def columns(draft: str) -> int:
    """How wide a draft is once it has names, as far as they are those it would like."""
    return len(draft) - draft.count(_OPENING) - draft.count(_CLOSING)


def with_placeholders(program: Program) -> Program:
    """A Program whose names are placeholders; it has its own name still."""
    return rename(program, placeholder)


@contextmanager
def plain_refusals() -> Iterator[None]:
    """Refusals that come from a draft speak of the Program's own names."""
    try:
        yield
    except NoKernel as refusal:
        refusal.fact = plain(refusal.fact)
        refusal.args = (str(refusal),)
        raise
    except InternalError as error:
        raise InternalError(plain(str(error))) from error

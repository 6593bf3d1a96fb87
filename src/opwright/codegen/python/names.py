"""Names in emitted Python: unique in a function, and shadowing nothing."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from opwright.codegen.allocator import Language
from opwright.codegen.placeholders import plain
from opwright.ir.names.fresh import fresh

_KEYWORDS = frozenset({*keyword.kwlist, *keyword.softkwlist} - {"_"})
RESERVED = frozenset({*keyword.kwlist, *dir(builtins), "ctx", "torch"})

# Comments and strings, but not what f-strings compute.
_IGNORED = re.compile(r'"""[^"]*"""|(?<!f)"(?:\\.|[^"\\\n])*"|#[^\n]*')

PYTHON = Language(reserved=lambda: _KEYWORDS, ignored=_IGNORED, spelling=lambda name: name)


class PythonNames:
    """Names values inside one function; a name that would hide a builtin ends in `_`."""

    def __init__(self, parameters: Iterable[str] = ()) -> None:
        self._taken = set(parameters)

    def fresh(self, wished: str) -> str:
        """The wanted name, with a number if it is taken."""
        name = fresh(f"{wished}_" if plain(wished) in RESERVED else wished, self._taken)
        self._taken.add(name)
        return name

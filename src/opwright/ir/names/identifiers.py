"""Names of parameters and variables in Programs: ASCII, and unique.

Reserved words of a language are avoided later (codegen/allocator.py).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from opwright.ir.names.fresh import fresh


def identifiers(names: Sequence[str]) -> list[str]:
    """Spell names uniquely: `β` becomes `beta`, and `_x`, which compilers reserve, `x_given`."""
    spelled = {name: name for name in names if name.isascii() and not name.startswith("_")}
    for name in names:
        plain = unreserved_spelling(name)
        wished = f"{plain}_given" if name.startswith("_") else plain
        spelled.setdefault(name, fresh(wished, spelled.values()))
    return [spelled[name] for name in names]


def unreserved_spelling(name: str) -> str:
    """The same without underscores around it: `_x` becomes `x`, and `_1` `value_1`."""
    plain = ascii_spelling(name).strip("_")
    return f"value_{plain}" if plain[:1].isdigit() else plain or "unnamed"


def ascii_spelling(name: str) -> str:
    """An identifier in ASCII: `β` becomes `beta`, `é` becomes `e`, any other character its code point."""
    return name if name.isascii() else "".join(map(_in_ascii, name))


def _in_ascii(letter: str) -> str:
    if letter.isascii():
        return letter
    known = unicodedata.name(letter, "")
    if greek := re.match("GREEK (SMALL|CAPITAL) LETTER ([A-Z]+)", known):
        return greek[2].lower() if greek[1] == "SMALL" else greek[2].capitalize()
    bare = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return bare if bare.isidentifier() else f"u{ord(letter):04x}"

"""allocate: a finished draft → a name for each of its placeholders, which nothing else in it has.

What a name must not be is read from the draft: the words that the emitter wrote are in it. Beside them only what a
language reserves wherever it stands counts, its keywords and the macros of what is included. Anything else that a
header declares may be called like a variable: the variable hides it, and the draft does not speak of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opwright.codegen.placeholders import PLACEHOLDER, placeholder, plain
from opwright.ir.names.fresh import fresh

_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")  # a word behind a dot is a member of something


@dataclass(frozen=True, slots=True)
class Language:
    """What names may be in a language.

    Attributes:
        reserved: Words that mean something wherever they stand.
        ignored: The parts of a text that no name can meet: comments and strings.
        spelling: The identifier that is closest to a name.
    """

    reserved: Callable[[], frozenset[str]]
    ignored: re.Pattern[str]
    spelling: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one scope, by placeholder."""

    given: dict[str, str]

    def spell(self, draft: str) -> str:
        """A draft, or a part of it, with its names."""
        return PLACEHOLDER.sub(lambda found: self.given[found[0]], draft)


def allocate(drafts: Sequence[str], language: Language) -> Names:
    """Give names in a scope: each placeholder gets the one it would like, with a number behind if that is not free.

    Names of the Program go before words that an emitter makes of them, and those of each kind in the order of the text.

    Args:
        drafts: All that the scope can see.
        language: That of the drafts.
    """
    placeholders = dict.fromkeys(found for draft in drafts for found in PLACEHOLDER.findall(draft))
    wishes = {each: language.spelling(plain(each)) for each in placeholders}
    ordered = sorted(wishes, key=lambda each: (each != placeholder(plain(each)), wishes[each] != plain(each)))
    taken = set(language.reserved()).union(*(_words(draft, language) for draft in drafts))
    given: dict[str, str] = {}
    for each in ordered:
        if wishes[each] not in taken:
            given[each] = wishes[each]
            taken.add(given[each])
    for each in ordered:
        if each not in given:
            given[each] = fresh(wishes[each], taken)
            taken.add(given[each])
    return Names(given)


def _words(draft: str, language: Language) -> set[str]:
    """The words that are no placeholders."""
    return {word for word in _WORD.findall(language.ignored.sub(" ", draft)) if not PLACEHOLDER.fullmatch(word)}

"""allocate: a finished draft → a unique name for each of its placeholders.

A name must differ from every word that the emitter wrote in the draft, and from what the language reserves everywhere:
keywords and the macros of included headers. Other declarations of a header may share a name with a variable: the
variable shadows them, and the draft does not use them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opwright.codegen.placeholders import PLACEHOLDER, placeholder, plain
from opwright.errors import InternalError
from opwright.ir.names.fresh import fresh

_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*", re.ASCII)  # a word after a dot is a member
_A_PLACEHOLDER = "_a_placeholder"


@dataclass(frozen=True, slots=True)
class Language:
    """The rules for names in a language.

    Attributes:
        reserved: Words that are reserved everywhere.
        ignored: The parts of a text that cannot conflict with names: comments and strings.
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
        """Replace the placeholders in a draft, or in a part of it."""
        return PLACEHOLDER.sub(lambda found: self.given[found[0]], draft)


def allocate(drafts: Sequence[str], language: Language) -> Names:
    """Give names in a scope: each placeholder gets its wanted name, followed by a number if that is taken.

    Names of the Program come before words derived from them; within each kind, the order of the text decides.

    Args:
        drafts: All text in the scope.
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
    """The words that are not placeholders; those that an emitter writes are ASCII."""
    found = set(_WORD.findall(PLACEHOLDER.sub(_A_PLACEHOLDER, language.ignored.sub(" ", draft))))
    if longer := [word for word in found if word.endswith(_A_PLACEHOLDER) and word != _A_PLACEHOLDER]:
        raise InternalError(f"a draft has placeholders inside words: {longer}")
    return found

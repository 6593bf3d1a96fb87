"""Functions of a source that differ only in names are written once."""

from __future__ import annotations

from dataclasses import dataclass, field

from opwright.codegen.placeholders import without_names


@dataclass(frozen=True, slots=True)
class SharedFunctions:
    """The functions of one source.

    Attributes:
        prefix: Of names that are made for parts of functions.
        names: By the text, with numbers for names.
    """

    prefix: str
    names: dict[str, str] = field(default_factory=dict)

    def name_of(self, draft: str, name: str) -> str:
        """The function that does what a draft under a name does: one that is written already, or else this one."""
        return self.names.setdefault(without_names(draft, name), name)

    def new_name(self) -> str:
        """A name for a part of a function, which no other has; it is no placeholder, because others call it."""
        return f"{self.prefix}_part_{len(self.names)}"

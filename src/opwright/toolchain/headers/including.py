"""The headers that sources include, which are known only after a compilation.

The first compilation of a source files a record of the headers that the compiler has read. From then on what is made of
it is looked up by the contents of these, and made again when one of them changes, is gone, or when another of its name
may now be found before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from opwright.errors import BuildFailed
from opwright.toolchain.headers.dependencies import newest_ns, read_dependencies
from opwright.toolchain.storage.cache import Entry
from opwright.toolchain.storage.records import RecordStore

# What has a compiler write down the headers that it reads, beside what it makes.
_DEPENDENCIES = "dependencies.d"
WRITING_DEPENDENCIES = ("-MD", "-MF", _DEPENDENCIES)
ATTEMPTS = 3


Made = TypeVar("Made", bound=Entry)


@dataclass(frozen=True)
class Including(Generic[Made]):
    """The headers of one compilation.

    Attributes:
        records: Where their names are kept.
        kind: The kind of these records.
        key: Of the compilation, whatever the headers say.
        made: Says what is made, given the headers as they are now; None if one is gone.
    """

    records: RecordStore
    kind: str
    key: str
    made: Callable[[Sequence[str]], Made | None]
    _doubtful: list[str] = field(default_factory=list)

    def known(self) -> Made | None:
        """Return what is made, built or not; None if the includes are unknown, or a header is gone."""
        match self.records.read(self.kind, self.key):
            case {"headers": [*headers]}:
                return self.made([str(header) for header in headers])
        return None

    def settled(self, directory: Path, begun_ns: int) -> Made | None:
        """Return what a compiler made in a directory, and file a record; None if a header may have changed meanwhile.

        A header that is newer than the beginning is doubtful, unless it is what it was after an attempt before: clocks
        of file systems may be ahead.
        """
        written = (directory / _DEPENDENCIES).read_text(encoding="utf-8", errors="surrogateescape")
        headers = read_dependencies(written)
        made = self.made(headers)
        if made is None:
            return None
        if newest_ns(headers) > begun_ns and made.key not in self._doubtful:
            self._doubtful.append(made.key)
            return None
        self.records.write(self.kind, self.key, {"headers": list(headers)})
        return made


def never_settled(source: str) -> BuildFailed:
    """The refusal if headers have changed at every attempt."""
    hint = "let whatever writes them finish, and try again"
    return BuildFailed(f"headers of {source} change while it is compiled", hint=hint)

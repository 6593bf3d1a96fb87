"""The sources of a rung: files or one text, and the functions that they define."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opwright.errors import FunctionMissing, ImplementationRefused, Place
from opwright.handwritten.declaration import Declaration, read_declarations


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, or a text in its place.

    Attributes:
        name: The path of the file, or the name that errors give the text.
        text: The content.
        folder: Where its `#include "…"` are looked up; None for a text.
    """

    name: str
    text: str
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Sources:
    """All sources of a rung.

    Attributes:
        files: The sources.
        include_directories: Further folders to look for headers in.
        flags: Further flags for the compiler.
    """

    files: tuple[SourceFile, ...]
    include_directories: tuple[Path, ...]
    flags: tuple[str, ...]

    def find(self, function: str) -> tuple[Declaration, ...]:
        """The definitions of a function: several if it is overloaded.

        Raises:
            FunctionMissing: If there is none.
        """
        name = function.rpartition("::")[2]
        every = [found for file in self.files for found in read_declarations(file.text, file.name)]
        found = tuple(declaration for declaration in every if declaration.name == name)
        if found:
            return found
        names = list(dict.fromkeys(declaration.name for declaration in every))
        close = difflib.get_close_matches(name, names, 1)
        place = next((d.place for d in every if d.name in close), Place(self.files[0].name, 1))
        there = f"the functions defined there are {', '.join(names)}" if names else "no function is defined there"
        raise FunctionMissing(
            f"no function '{function}' is defined in {', '.join(file.name for file in self.files)}",
            place=place,
            hint=f"did you mean '{close[0]}'?" if close else there,
        )

    def search_path(self) -> tuple[str, ...]:
        """The flags with which the compiler finds headers."""
        folders = dict.fromkeys(file.folder for file in self.files if file.folder)
        return (*[f"-iquote{folder}" for folder in folders], *[f"-I{folder}" for folder in self.include_directories])

    def shown(self) -> str:
        """All files, each below its name."""
        return "\n".join(f"// {file.name}\n{file.text.rstrip()}\n" for file in self.files)

    def texts(self) -> Iterator[str]:
        """The sources, each after a `#line` that tells the compiler its origin."""
        for file in self.files:
            escaped = file.name.replace("\\", "\\\\").replace('"', '\\"')
            yield f'#line 1 "{escaped}"\n{file.text}'


def read_sources(
    operator: str,
    given: Sequence[str | Path],
    text: str | None,
    beside: str,
    include_directories: Sequence[str | Path],
    flags: Sequence[str],
) -> Sources:
    """Read `sources=` or `source=` of `implement`.

    Args:
        operator: The name of the operator.
        given: Paths; relative ones start at the folder of the file that defines the reference.
        text: The text of the source, instead of paths.
        beside: The file that defines the reference.
        include_directories: Where headers are looked for.
        flags: Further flags for the compiler.

    Raises:
        ImplementationRefused: If there are no sources, both kinds, or a file that cannot be read.
    """
    base = Path(beside).parent
    if isinstance(given, (str, Path)):
        given = (given,)
    if bool(given) == (text is not None):
        raise ImplementationRefused(
            f"implement of {operator} was given {'both sources= and source=' if given else 'no source'}",
            hint='give sources=["file.cpp"], or source="the text"',
        )
    files = [SourceFile(f"<source of {operator}>", text, None)] if text is not None else []
    for name in given:
        path = (base / name).resolve()
        try:
            files.append(SourceFile(str(path), path.read_text(encoding="utf-8"), path.parent))
        except (OSError, UnicodeDecodeError) as error:
            raise ImplementationRefused(f"the source {path} of {operator} cannot be read: {error}") from None
    return Sources(tuple(files), tuple((base / folder).resolve() for folder in include_directories), tuple(flags))

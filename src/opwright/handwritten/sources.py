"""The sources of a rung: files or one text, with the functions that are defined in them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opwright.errors import FunctionMissing, ImplementationRefused, Place
from opwright.handwritten.declaration import Declaration, read_declarations


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, or a text that stands in for one.

    Attributes:
        name: The path of the file, or what the text is called where errors name a place.
        text: What is in it.
        folder: Where its own `#include "…"` are looked for; None for a text.
    """

    name: str
    text: str
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Sources:
    """All sources of a rung.

    Attributes:
        files: The sources.
        include_directories: Where headers are looked for besides.
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
        there = f"what is defined there is {', '.join(names)}" if names else "no function is defined there"
        raise FunctionMissing(
            f"no function '{function}' is defined in {', '.join(file.name for file in self.files)}",
            place=place,
            hint=f"did you mean '{close[0]}'?" if close else there,
        )

    def search_path(self) -> tuple[str, ...]:
        """The flags that let the compiler find headers."""
        folders = dict.fromkeys(file.folder for file in self.files if file.folder)
        return (*[f"-iquote{folder}" for folder in folders], *[f"-I{folder}" for folder in self.include_directories])

    def shown(self) -> str:
        """All files, each below its name."""
        return "\n".join(f"// {file.name}\n{file.text.rstrip()}\n" for file in self.files)

    def texts(self) -> Iterator[str]:
        """The sources, each with a line that tells the compiler where it comes from."""
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
    """Read what `implement` was given.

    Args:
        operator: What the operator is called.
        given: Paths; relative ones start at the folder of the file that defines the reference.
        text: The source itself, instead of paths.
        beside: That file.
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
            f"{operator} is to be implemented by {'files and a text' if given else 'no source'}",
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

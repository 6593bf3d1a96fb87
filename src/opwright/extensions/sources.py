"""A user's own sources: their languages, and which lists of them cannot be built."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from opwright.errors import SourcesRefused

Language = Literal["cpp", "cuda"]

LANGUAGES: dict[str, Language] = {
    ".cpp": "cpp",
    ".cc": "cpp",
    ".cxx": "cpp",
    ".c++": "cpp",
    ".C": "cpp",
    ".c": "cpp",
    ".cu": "cuda",
    ".cuh": "cuda",
}
_NOT_OURS = {
    ".sycl": "SYCL sources are not built here",
    ".hip": "HIP sources are not built here",
    ".mm": "Objective-C++ sources are not built here",
}
TORCHS_OWN = "torch.utils.cpp_extension builds them"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One source: a file of the user, or a text.

    Attributes:
        path: The absolute path of the file; for a text, a name.
        text: The text; None for a file.
    """

    path: Path
    text: str | None = None

    @property
    def language(self) -> Language:
        """The language, which decides the compiler."""
        return LANGUAGES[self.path.suffix]

    def read(self) -> bytes:
        """Return its content.

        Raises:
            SourcesRefused: The file cannot be read.
        """
        if self.text is not None:
            return self.text.encode()
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise SourcesRefused(f"the source {self.path} cannot be read: {error.strerror}") from error


def source_files(paths: Sequence[str | Path]) -> tuple[SourceFile, ...]:
    """Return the files of a list of paths, made absolute.

    Raises:
        SourcesRefused: The list is empty, a file is not there, its suffix is unknown, or two files of one folder differ
            by their suffix alone.
    """
    files = tuple(SourceFile(Path(path).absolute()) for path in paths)
    if not files:
        raise SourcesRefused("there is no source to build", hint="name at least one .cpp or .cu file")
    for file in files:
        _refuse_unknown(file.path)
    _refuse_twins([file.path for file in files])
    return files


def check_name(name: str) -> str:
    """Return the name of an extension.

    Raises:
        SourcesRefused: It is not a name that C and Python know.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise SourcesRefused(
            f"an extension cannot be named {name!r}", hint="use letters, digits and '_', as for a Python variable"
        )
    return name


def _refuse_unknown(path: Path) -> None:
    if path.suffix in _NOT_OURS:
        raise SourcesRefused(f"{_NOT_OURS[path.suffix]}: {path}", hint=TORCHS_OWN)
    if path.suffix not in LANGUAGES:
        raise SourcesRefused(
            f"the language of {path} is unknown: its suffix is {path.suffix!r}",
            hint=f"known suffixes are {', '.join(LANGUAGES)}; headers are found through #include",
        )
    if not path.is_file():
        raise SourcesRefused(
            f"there is no source {path}", hint=f"paths are relative to the working directory, {Path.cwd()}"
        )


def _refuse_twins(paths: Sequence[Path]) -> None:
    """Refuse x.cpp beside x.cu: setuptools gives both the same object file, and one of them is lost."""
    seen: dict[Path, Path] = {}
    for path in paths:
        other = seen.setdefault(path.with_suffix(""), path)
        if other is path:
            continue
        if other == path:
            raise SourcesRefused(f"the source {path} is listed twice")
        raise SourcesRefused(
            f"{other} and {path.name} differ only in their suffix, so they would share one object file",
            hint=f"rename one of them, for example to {path.stem}_{LANGUAGES[path.suffix]}{path.suffix}",
        )

"""Headers: which ones a compiler read, whether they have changed, and whether another would now be found first."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opwright.toolchain.storage.records import digest

_WORD = re.compile(r"(?:\\.|[^\s\\])+")
_ESCAPED = re.compile(r"\\(.)|\$(\$)")
_PROBE = b"__has_include"
_NAME = re.compile(rb'["<]([^"<>\n]+)[">]')


def read_dependencies(text: str) -> tuple[str, ...]:
    """Return the absolute paths that a rule of make, as compilers write it with -MD, names as prerequisites."""
    _, _, prerequisites = text.replace("\\\n", " ").partition(": ")
    words = (_ESCAPED.sub(r"\1\2", word) for word in _WORD.findall(prerequisites))
    return tuple(dict.fromkeys(os.path.normpath(word) for word in words if os.path.isabs(word)))


@dataclass(frozen=True, slots=True)
class Marks:
    """What changes when a header does.

    Attributes:
        own: The digest of the content of each header of the user.
        installed: The size and time of each header that belongs to something installed; there are thousands of them.
        probed: What those of the user may ask for by `__has_include`, which compilers do not write down.
    """

    own: Mapping[str, str]
    installed: Mapping[str, str]
    probed: frozenset[str] = frozenset()


def marks(paths: Iterable[str], installed: Sequence[Path]) -> Marks | None:
    """Return the marks of some headers, of which those below `installed` are installed; None if one is not there."""
    folders = tuple(f"{folder}{os.sep}" for folder in installed)
    own: dict[str, str] = {}
    stamps: dict[str, str] = {}
    asked: set[str] = set()
    try:
        for path in paths:
            if path.startswith(folders):
                stamps[path] = _stamp(path)
            else:
                content = Path(path).read_bytes()
                own[path] = digest(content)
                asked |= probed(content)
    except OSError:
        return None
    return Marks(own, stamps, frozenset(asked))


def probed(text: bytes) -> set[str]:
    """Return the names of files in a text that asks by `__has_include`, perhaps of a macro, whether they exist."""
    return {os.fsdecode(name) for name in _NAME.findall(text)} if _PROBE in text else set()


def newest_ns(paths: Iterable[str]) -> int:
    """Return when the last of some files was changed, in nanoseconds since the epoch."""
    return max((os.stat(path).st_mtime_ns for path in paths), default=0)


def namesakes(headers: Marks, directories: Iterable[Path], installed: Sequence[Path], source: bytes = b"") -> list[str]:
    """Return the files that could be taken for one of the headers by their names; a new one may now be found first.

    Args:
        headers: The headers that were read.
        directories: Where the compiler looks before the installed folders; the folders of the headers are added.
        installed: Folders that change only when something is installed; what is in them is no namesake.
        source: What is compiled, if it is none of the headers.
    """
    names = (*headers.own, *headers.installed, *headers.probed, *probed(source))
    words = frozenset(word for name in names for word in name.split(os.sep))
    own = [Path(path).parent for path in headers.own]
    searched = [folder for folder in dict.fromkeys((*directories, *own)) if not _is_below(folder, installed)]
    return sorted({file for folder in searched for file in _reachable(folder, words, installed)})


def _reachable(directory: Path, words: frozenset[str], installed: Sequence[Path]) -> Iterator[str]:
    """Yield the files below a directory whose path is made of known words."""
    for entry in os.scandir(directory) if directory.is_dir() else ():
        if entry.name not in words:
            continue
        if not entry.is_dir():
            yield entry.path
        elif not entry.is_symlink() and not any(folder.is_relative_to(entry.path) for folder in installed):
            yield from _reachable(Path(entry.path), words, installed)


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _stamp(path: str) -> str:
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns}"

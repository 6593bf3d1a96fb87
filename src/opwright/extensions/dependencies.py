"""Headers: which ones a compiler read, whether they are as they were, and whether another now stands before one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opwright.toolchain.records import digest

_WORD = re.compile(r"(?:\\.|[^\s\\])+")
_ESCAPED = re.compile(r"\\(.)|\$(\$)")


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
    """

    own: Mapping[str, str]
    installed: Mapping[str, str]


def marks(paths: Iterable[str], installed: Sequence[Path]) -> Marks | None:
    """Return the marks of some headers, of which those below `installed` are installed; None if one is not there."""
    folders = tuple(f"{folder}{os.sep}" for folder in installed)
    own: dict[str, str] = {}
    stamps: dict[str, str] = {}
    try:
        for path in paths:
            if path.startswith(folders):
                stamps[path] = _stamp(path)
            else:
                own[path] = digest(Path(path).read_bytes())
    except OSError:
        return None
    return Marks(own, stamps)


def newest_ns(paths: Iterable[str]) -> int:
    """Return when the last of some files was changed, in nanoseconds since the epoch."""
    return max((os.stat(path).st_mtime_ns for path in paths), default=0)


def namesakes(headers: Marks, directories: Iterable[Path], installed: Sequence[Path]) -> list[str]:
    """Return the files that could be taken for one of the headers by their names; a new one may now be found first.

    Args:
        headers: The headers that were read.
        directories: Where the compiler looks before the installed folders; the folders of the headers are added.
        installed: Folders that change only when something is installed; what is in them is no namesake.
    """
    words = frozenset(word for path in (*headers.own, *headers.installed) for word in path.split(os.sep))
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

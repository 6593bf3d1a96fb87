"""The cache directory: private, and refused if others could write to it or replace it."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opwright.errors import CacheUnusable, UnsafeCache

ELSEWHERE = "choose another folder with OPWRIGHT_CACHE=/path/to/folder"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_directory(path: Path) -> Path:
    """Create the cache directory, and the folders that it lies in, with mode 0700 where they are missing.

    Returns:
        Its path without symbolic links: a link that changes later has no effect.

    Raises:
        UnsafeCache: It, or a folder that it lies in, belongs to another user or can be written by one.
        CacheUnusable: It cannot be created or looked at.
    """
    with refusing_os_errors(path.absolute()):
        path = Path(os.path.realpath(path))
        for folder in (*reversed(path.parents), path):
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)
        _refuse_open(path, path.stat())
        administrators = {0, os.stat("/").st_uid}  # in a user namespace, root may show as nobody
        for folder in path.parents:
            _refuse_open_ancestor(path, folder, folder.stat(), administrators)
    return path


def subdirectory(parent: Path, *names: str) -> Path:
    """Create, with mode 0700 at every level, a directory below the cache directory."""
    for name in names:
        parent = parent / name
        parent.mkdir(mode=0o700, exist_ok=True)
    return parent


@contextmanager
def refusing_os_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses in the cache directory `path` into a CacheUnusable."""
    try:
        yield
    except OSError as error:
        raise CacheUnusable(f"the cache directory {path} cannot be used: {error}", hint=ELSEWHERE) from error


def _refuse_open(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise UnsafeCache(f"the cache directory {path} belongs to another user (uid {status.st_uid})", hint=ELSEWHERE)
    if status.st_mode & _OTHERS_WRITE:
        raise UnsafeCache(
            f"the cache directory {path} can be written by other users (mode {stat.S_IMODE(status.st_mode):04o})",
            hint=f"chmod go-w {path}, once you trust what is in it; or {ELSEWHERE}",
            folder=str(path),
        )


def _refuse_open_ancestor(path: Path, folder: Path, status: os.stat_result, administrators: set[int]) -> None:
    """Refuse a folder whose owner, or others, could rename what the cache directory lies in, and put theirs there.

    As OpenSSH has it for its keys, but for two kinds of folders that others may write to: sticky ones, as that for
    temporary files is, where nobody renames what belongs to another; and those of a group that has one user as its
    only member.
    """
    mine = status.st_uid == os.geteuid()
    if not mine and status.st_uid not in administrators:
        raise UnsafeCache(
            f"the cache directory {path} lies in {folder}, which belongs to another user (uid {status.st_uid})",
            hint=ELSEWHERE,
        )
    if not status.st_mode & _OTHERS_WRITE or status.st_mode & stat.S_ISVTX:
        return
    if not status.st_mode & stat.S_IWOTH and _is_private_group(status.st_gid):
        return
    mode = stat.S_IMODE(status.st_mode)
    raise UnsafeCache(
        f"the cache directory {path} lies in {folder}, which can be written by other users (mode {mode:04o})",
        hint=f"chmod go-w {folder}; or {ELSEWHERE}" if mine else ELSEWHERE,
        folder=str(folder) if mine else None,
    )


def _is_private_group(gid: int) -> bool:
    """Whether a group is this user's own: his primary one, of his name, without other members."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:  # as for the made-up users of containers
        return False
    return user.pw_gid == gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}

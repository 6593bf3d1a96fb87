"""torch_extensions: ninja and stale lock files of `torch.utils.cpp_extension`; `opwright.load` has neither."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from opwright.doctor.finding import Finding
from opwright.settings import Settings

_NAME = "torch's cpp_extension"


def torch_extensions(settings: Settings) -> Finding:
    """Look for ninja, and for lock files that no process has open: torch's `load` waits for these forever."""
    stale = [lock for lock in _locks(settings.torch_extensions) if not _is_open(lock)]
    if stale:
        complaint = f"its load waits forever for lock files of processes that have ended: {len(stale)}"
        return Finding(_NAME, "limited", complaint, shlex.join(["rm", *map(str, stale)]))
    if shutil.which("ninja") is None:
        return Finding(
            _NAME, "limited", "needs ninja, which is not installed; opwright.load does not need it", "pip install ninja"
        )
    return Finding(_NAME, "works", "ninja is installed, and there are no stale locks")


def _locks(root: Path | None) -> list[Path]:
    """Return the lock files of builds in one folder, or in a folder for each version of Python."""
    if root is None:
        return []
    return sorted({*root.glob("*/lock"), *root.glob("*/*/lock")})


def _is_open(file: Path) -> bool:
    """Whether a process has a file open; one of another user is assumed to."""
    try:
        wanted = file.stat()
    except OSError:
        return True
    for process in Path("/proc").glob("[0-9]*/fd"):
        try:
            descriptors = list(os.scandir(process))
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                seen = descriptor.stat()
            except OSError:
                continue
            if (seen.st_dev, seen.st_ino) == (wanted.st_dev, wanted.st_ino):
                return True
    return wanted.st_uid != os.geteuid()

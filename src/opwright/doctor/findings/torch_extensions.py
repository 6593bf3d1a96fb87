"""torch_extensions: what `torch.utils.cpp_extension` needs, and what hangs it; `opwright.load` needs neither."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from opwright.doctor.finding import Finding
from opwright.settings import Settings

_NAME = "torch's cpp_extension"


def torch_extensions(settings: Settings) -> Finding:
    """Look for ninja, and for lock files that nobody has open: `load` of torch waits for these for ever."""
    stale = [lock for lock in _locks(settings.torch_extensions) if not _is_open(lock)]
    if stale:
        complaint = f"its load waits for ever for lock files of processes that ended: {len(stale)}"
        return Finding(_NAME, "limited", complaint, shlex.join(["rm", *map(str, stale)]))
    if shutil.which("ninja") is None:
        return Finding(
            _NAME, "limited", "needs ninja, which is not here; opwright.load does without", "pip install ninja"
        )
    return Finding(_NAME, "works", "ninja is here, and no lock is left behind")


def _locks(root: Path | None) -> list[Path]:
    """Return the lock files of builds: of one folder, or of folders by version of Python."""
    if root is None:
        return []
    return sorted({*root.glob("*/lock"), *root.glob("*/*/lock")})


def _is_open(file: Path) -> bool:
    """Say whether a process holds a file open; those of other users count as doing so."""
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

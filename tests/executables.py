"""Scripts that tests put in the place of programs."""

from __future__ import annotations

import os
from pathlib import Path


def write_executable(path: Path, text: str) -> Path:
    """Write a script that can be run; one that is running is replaced, since Linux refuses to overwrite it.

    The folder is made if it is not there.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text(text)
    beside.chmod(0o700)
    return beside.replace(path)

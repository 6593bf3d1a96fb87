"""Which machines libraries run on, as the names of wheels say it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_LEAST = (2, 28)  # of glibc: what torch's own wheels ask for, from 2.6 on
_NEEDED = re.compile(rb"GLIBC_(\d+)\.(\d+)")


def platform_tag(libraries: Iterable[Path], machine: str) -> str:
    """Return the tag of a Linux with the newest glibc that libraries ask for, such as manylinux_2_28_x86_64.

    Args:
        libraries: Shared objects; the versions of glibc that they ask for are among the strings in them.
        machine: The architecture.
    """
    needed = {
        (int(major), int(minor)) for library in libraries for major, minor in _NEEDED.findall(library.read_bytes())
    }
    major, minor = max({_LEAST, *needed})
    return f"manylinux_{major}_{minor}_{machine}"

"""Whether the libraries of a package fit this machine and this torch; tested before they are loaded."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def mismatch(
    stamp: Mapping[str, Any],
    folder: Path,
    torch_version: str,
    machine: str = platform.machine(),
    system: str = sys.platform,
) -> str | None:
    """Say in one sentence why the libraries must not be loaded; None if they may.

    Args:
        stamp: What they were built for.
        folder: Where they are.
        torch_version: The version of torch at hand.
        machine: The architecture at hand.
        system: The operating system at hand.
    """
    if (system, machine) != (stamp["system"], stamp["machine"]):
        return f"its kernels are for {stamp['system']} on {stamp['machine']}, and this is {system} on {machine}"
    if _release(torch_version) < _release(stamp["torch_target"]):
        return f"its kernels need torch {stamp['torch_target']} or newer, and this is torch {torch_version}"
    for name, digest in stamp["libraries"].items():
        library = folder / name
        if not library.is_file():
            return f"its library {name} is missing"
        if hashlib.sha256(library.read_bytes()).hexdigest() != digest:
            return f"its library {name} is not the one that was built"
    return None


def _release(version: str) -> tuple[int, int]:
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)

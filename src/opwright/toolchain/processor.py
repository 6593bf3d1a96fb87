"""The processor that `-march=native` means here."""

from __future__ import annotations

import platform
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from opwright.toolchain.storage.records import digest

_TELLING = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
)


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """Name the instruction set of this machine: its architecture and a digest of what its processor can do."""
    return f"{platform.machine()}-{digest(_description(Path('/proc/cpuinfo')))[:16]}"


def _description(cpuinfo: Path) -> str:
    """Return the telling lines about the first core; reading all cores of a large machine takes milliseconds."""
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as file:
            first_core = list(takewhile(str.strip, file))
    except OSError:
        return platform.processor()
    return "".join(line for line in first_core if line.partition(":")[0].strip() in _TELLING)

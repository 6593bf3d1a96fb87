"""How many compilers may run at once: one for each core, as long as there is memory for each."""

from __future__ import annotations

import re
from pathlib import Path

from opwright.settings import Settings
from opwright.toolchain.process.cores import available_cores

_MEMORY = Path("/proc/meminfo")
_OWN_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def jobs_at_once(settings: Settings, bytes_each: int) -> int:
    """Return MAX_JOBS if the user has set it, else what cores and memory allow; at least one."""
    if settings.job_limit is not None:
        return settings.job_limit
    cores = available_cores()
    memory = available_bytes()
    return cores if memory is None else max(1, min(cores, memory // bytes_each))


def available_bytes() -> int | None:
    """Return how much memory this process can still take, by the machine and by its control groups."""
    known = [size for size in (_of_machine(), _of_groups()) if size is not None]
    return min(known, default=None)


def _of_machine() -> int | None:
    match = re.search(r"^MemAvailable:\s+(\d+) kB", _text(_MEMORY), re.MULTILINE)
    return int(match[1]) << 10 if match else None


def _of_groups() -> int | None:
    """Return the memory that the tightest control group of this process leaves."""
    match = re.search(r"^0::/(.*)$", _text(_OWN_GROUP), re.MULTILINE)
    group = _GROUPS / (match[1] if match else "")
    left = []
    for folder in (group, *group.parents):
        limit, used = _text(folder / "memory.max").strip(), _text(folder / "memory.current").strip()
        if limit.isdigit() and used.isdigit():
            left.append(max(0, int(limit) - int(used)))
    return min(left, default=None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""

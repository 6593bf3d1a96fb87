"""leftovers: running builds, killed builds, and failed builds."""

from __future__ import annotations

import shlex
from pathlib import Path

from opwright.doctor.finding import Finding
from opwright.settings import Settings
from opwright.toolchain.storage.locks import try_lock

_NAME = "builds"


def leftovers(settings: Settings) -> Finding:
    """Look for unfinished builds: one without a lock was killed, as the system releases the locks of a dead process."""
    try:
        building = sorted((settings.cache_directory / "building").iterdir())
    except OSError:
        building = []
    under_way = [path for path in building if _is_held(settings.cache_directory, path)]
    abandoned = len(building) - len(under_way)
    failed = sum(1 for _ in settings.cache_directory.glob("failed/*"))
    facts = [
        f"{len(under_way)} running" if under_way else "none running",
        *([f"{abandoned} left by killed processes, which the next build removes"] if abandoned else []),
        *([f"{failed} that failed are kept for inspection"] if failed else []),
    ]
    remedy = f"rm -r {shlex.quote(str(settings.cache_directory / 'failed'))}" if failed else None
    return Finding(_NAME, "works", "; ".join(facts), remedy)


def _is_held(cache: Path, building: Path) -> bool:
    lock = cache / "locks" / f"{building.name.partition('.')[0]}.lock"
    if not lock.exists():
        return False
    with try_lock(lock) as nobody_builds:
        return not nobody_builds

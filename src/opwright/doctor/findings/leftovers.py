"""leftovers: builds under way, builds that were killed, and builds that failed."""

from __future__ import annotations

import shlex
from pathlib import Path

from opwright.doctor.finding import Finding
from opwright.settings import Settings
from opwright.toolchain.storage.locks import try_lock

_NAME = "builds"


def leftovers(settings: Settings) -> Finding:
    """Look for builds in the making. A lock dies with its holder, so what has none was left behind."""
    try:
        building = sorted((settings.cache_directory / "building").iterdir())
    except OSError:
        building = []
    under_way = [path for path in building if _is_held(settings.cache_directory, path)]
    abandoned = len(building) - len(under_way)
    failed = sum(1 for _ in settings.cache_directory.glob("failed/*"))
    facts = [
        f"{len(under_way)} under way" if under_way else "none under way",
        *([f"{abandoned} left by processes that were killed, which the next build removes"] if abandoned else []),
        *([f"{failed} that failed are kept to be looked at"] if failed else []),
    ]
    remedy = f"rm -r {shlex.quote(str(settings.cache_directory / 'failed'))}" if failed else None
    return Finding(_NAME, "works", "; ".join(facts), remedy)


def _is_held(cache: Path, building: Path) -> bool:
    lock = cache / "locks" / f"{building.name.partition('.')[0]}.lock"
    if not lock.exists():
        return False
    with try_lock(lock) as nobody_builds:
        return not nobody_builds

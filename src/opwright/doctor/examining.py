"""examine: test everything that opwright uses on this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from opwright.doctor.finding import Examination, Finding
from opwright.doctor.findings.cache import cache
from opwright.doctor.findings.table import FINDINGS
from opwright.settings import Settings


def examine(
    settings: Settings | None = None, *, progress: Callable[[str, int, int], None] | None = None
) -> Examination:
    """Find what works on this machine and what does not, and the command that fixes it.

    Args:
        settings: The settings to examine; None for those of the environment.
        progress: Called with the current subject, the number of finished ones, and their total.
    """
    settings = settings or Settings.from_environment()
    found: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="opwright-doctor-") as scratch:
        for done, look in enumerate(FINDINGS):
            if progress is not None:
                progress(look.__name__.replace("_", " "), done, len(FINDINGS))
            found.append(look(settings))
            if look is cache and found[-1].state == "broken":
                # an unusable cache must not affect the findings that follow
                settings = replace(settings, cache_directory=Path(scratch))
    return Examination(tuple(found))

"""Settings for tests: those of the environment, with a cache of their own and nothing said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opwright.settings import Settings


def quiet_settings(cache: Path) -> Settings:
    """The compiler that the environment names, so that a whole suite can run with sanitizers."""
    return replace(Settings.from_environment(), cache_directory=cache, notify=False)

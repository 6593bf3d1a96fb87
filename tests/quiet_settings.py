"""Settings for tests: those of the environment, with a cache of their own and nothing said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opwright.settings import Settings
from tests.quick_compiler import chosen_compiler


def quiet_settings(cache: Path) -> Settings:
    """Kernels are built as users build them, by the compiler of the environment: a suite can run with sanitizers."""
    return replace(Settings.from_environment(), cache_directory=cache, compiler=chosen_compiler(), notify=False)

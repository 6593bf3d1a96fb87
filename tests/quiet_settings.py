"""Settings for tests of the kernels themselves: built as users build them, and nothing said."""

from __future__ import annotations

from dataclasses import replace

from opwright.settings import Settings
from tests.quick_compiler import chosen_compiler


def quiet_settings(*, optimized: bool = True) -> Settings:
    """Kernels of the compiler of the environment, so that a suite can run with sanitizers, without the hot path in C++.

    That one takes a minute to build so, and has tests of its own.

    Args:
        optimized: Whether kernels are built as users build them, or in a third of the time.
    """
    settings = replace(Settings.from_environment(), notify=False)
    return replace(settings, compiler=chosen_compiler(), tape="off") if optimized else settings

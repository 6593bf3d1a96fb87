"""What is imported is kept out of the garbage collector's way.

A full collection walks over all of PyTorch and of the tests. In tests/benchmark/test_measure.py and
tests/auditing/test_examine.py that was 13.9 of 36 seconds of processor time, and is 1.7 of 14 so.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator

import pytest

_MANY = 100
_frozen_modules = 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Freeze what is there before a test that follows many imports; the first test follows the collection of all."""
    global _frozen_modules
    if len(sys.modules) > _frozen_modules + _MANY:
        if disabled := sys.modules.get("opwright.tracing.torch_hooks.disabled"):
            disabled.spare_the_compiler()  # which asks the collector for functions, and sees none that are frozen
        gc.collect()
        gc.freeze()
        _frozen_modules = len(sys.modules)
    return (yield)

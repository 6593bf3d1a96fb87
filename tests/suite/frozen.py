"""Keep imported modules out of garbage collections (`gc.freeze`), and collect seldom.

A full collection walks over all of PyTorch and of the tests. In tests/benchmark/test_measure.py and
tests/auditing/test_examine.py that took 13.9 of 36 seconds of CPU time; with `gc.freeze`, 1.7 of 14.
Collections of what is young, at each 700 objects, took 1.0 and 2.7 of 20 seconds in five files of tests of operators
and modules. Tests make little garbage in cycles.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator

import pytest

_MANY = 100
_YOUNG = (50_000, 20, 50)  # for `gc.set_threshold`
_frozen_modules = 0


def pytest_configure() -> None:
    """Collect seldom."""
    gc.set_threshold(*_YOUNG)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Freeze all objects before a test that follows many imports, such as the first test after the collection."""
    freeze_what_is_new()
    return (yield)


def freeze_what_is_new() -> None:
    """Freeze all objects if many modules were imported since the last time."""
    global _frozen_modules
    if len(sys.modules) > _frozen_modules + _MANY:
        if disabled := sys.modules.get("opwright.tracing.torch_hooks.disabled"):
            disabled.spare_the_compiler()  # it lists functions by `gc`, which hides frozen ones
        gc.collect()
        gc.freeze()
        _frozen_modules = len(sys.modules)


def pytest_sessionfinish() -> None:
    """Leave little to the five collections in which pytest looks for what could not be raised."""
    gc.collect()
    gc.freeze()

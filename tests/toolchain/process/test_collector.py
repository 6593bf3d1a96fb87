"""Full collections wait until the last of those who asked for it has ended; what others set stays."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

import opwright
from opwright.toolchain.process.collector import no_full_collections


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_contexts_overlap() -> None:
    first, second = no_full_collections(), no_full_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[:2] == (700, 10)
    assert gc.get_threshold()[2] > 10**6
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


def test_young_garbage_is_collected() -> None:
    with no_full_collections():
        kept = weakref.ref(Cycle())
        held = [Cycle() for _ in range(100_000)]
    assert kept() is None
    assert held


def test_what_is_set_meanwhile_stays() -> None:
    with no_full_collections():
        gc.set_threshold(500, 5, 5)
    assert gc.get_threshold() == (500, 5, 5)


def test_a_derivation_leaves_no_trace() -> None:
    seen = []

    def reference(x):  # type: ignore[no-untyped-def]
        return x.sin() * 2

    operator = opwright.operator(reference, samples=opwright.shapes("N", N=3))
    original = gc.set_threshold
    gc.set_threshold = lambda *given: (seen.append(given), original(*given))[1]  # type: ignore[assignment]
    try:
        operator.explain()
    finally:
        gc.set_threshold = original
    assert any(full > 10**6 for *_, full in seen)
    assert gc.get_threshold() == (700, 10, 10)

"""Kernels built together are those that would have been built alone, and serve the calls that follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.settings import Settings
from tests.quiet_settings import quiet_settings
from tests.suite.built_together import build_together
from tests.suite.kept_libraries import another_cache


def reference(number: int) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        return torch.sin(x) * number + x.sum(-1, keepdim=True)

    return function


def called(number: int, settings: Settings) -> Operator:
    """An operator of a name that others have, after a call with gradients."""
    operator = Operator(reference(number), name="together", settings=settings)
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    for result in (operator(x), operator(x)):
        (gradient,) = torch.autograd.grad(result.sum(), x)
        torch.testing.assert_close(result, operator.reference(x))
        torch.testing.assert_close(gradient, torch.cos(x) * number + 4)
    return operator


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(quiet_settings(optimized=False), cache_directory=tmp_path / "cache", tape="off")


def test_calls_find_what_was_built(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_together(*(lambda number=number: called(number, settings) for number in range(2, 6))) == 8
    inodes = {library.stat().st_ino for library in settings.cache_directory.glob("libraries/*/*/together*.so")}
    assert len(inodes) == 1
    monkeypatch.setattr("opwright.toolchain.build.build_recipes", None)  # nothing is left to build
    for number in range(2, 6):
        assert called(number, settings).last_rung == "cpp"
    assert build_together(lambda: called(2, settings)) == 0


def test_both_ways_are_one_file_where_libraries_are_shared(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    monkeypatch.setattr("tests.suite.built_together._build", lambda sources, *_: built.append(len(sources)))
    called(8, settings)
    assert not built
    called(8, replace(settings, cache_directory=another_cache()))
    assert built == [2]


def test_what_cannot_be_built_together_is_built_alone(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.suite.built_together._apart", lambda *_: "not C++")
    assert build_together(lambda: called(2, settings)) == 0
    assert called(2, settings).last_rung == "cpp"


def test_a_call_that_raises_leaves_the_others(settings: Settings) -> None:
    def raises() -> None:
        raise ValueError

    assert build_together(raises, lambda: called(3, settings)) == 2

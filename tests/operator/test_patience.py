"""OPWRIGHT_PATIENCE: a call waits so long for compilers, and the function serves until they are done."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import opwright
from opwright.binding.variants import building
from opwright.operators.base import BaseOperator
from opwright.settings import Settings
from opwright.toolchain.storage.records import RecordStore
from tests.quiet_settings import quiet_settings

x = torch.linspace(-1, 1, 12).reshape(3, 4)


def function(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * torch.sigmoid(x) + 3.0


def settings_in(folder: Path) -> Settings:
    return replace(quiet_settings(optimized=False), cache_directory=folder, tape="off")


def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each build take a while longer."""
    build = building.build

    def slow(*args: Any, **kwargs: Any) -> Any:
        time.sleep(0.5)
        return build(*args, **kwargs)

    monkeypatch.setattr(building, "build", slow)


def wait_for(operator: BaseOperator) -> None:
    for _ in range(600):
        operator(x)
        if not operator.is_building:
            return
        time.sleep(0.05)
    raise AssertionError("the build never ended")


@pytest.mark.falls_back
def test_the_function_serves_until_kernels_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slowly(monkeypatch)
    settings = replace(settings_in(tmp_path), patience_s=0.05, notify=True)
    operator = BaseOperator(function, settings=settings)
    begun = time.monotonic()
    with pytest.warns(opwright.FallbackWarning, match="still being built"):
        torch.testing.assert_close(operator(x), function(x))
    assert operator.last_rung == "composed"
    assert operator.is_building
    torch.testing.assert_close(operator(x), function(x))  # without another warning, and without waiting
    wait_for(operator)
    assert operator.last_rung == "cpp"
    assert time.monotonic() - begun > 0.5
    torch.testing.assert_close(operator(x), function(x))
    given = x.clone().requires_grad_()
    with pytest.warns(opwright.FallbackWarning, match="still being built"):  # other kernels
        BaseOperator(function, name="again", settings=replace(settings, cache_directory=tmp_path / "other"))(given)


@pytest.mark.falls_back
def test_a_call_that_waits_no_more_reads_nothing_from_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slowly(monkeypatch)
    operator = BaseOperator(function, settings=replace(settings_in(tmp_path), patience_s=0.0))
    read, read_keys = RecordStore.read, []

    def counted(store: RecordStore, folder: str, key: str) -> Any:
        read_keys.append(key)
        return read(store, folder, key)

    monkeypatch.setattr(RecordStore, "read", counted)
    operator(x)
    of_the_first = len(read_keys)
    operator(x)
    assert operator.is_building
    assert 0 < of_the_first == len(read_keys)


@pytest.mark.nightly
def test_a_pinned_call_and_patience_without_limit_wait(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slowly(monkeypatch)
    settings = replace(settings_in(tmp_path), patience_s=0.0)
    operator = BaseOperator(function, settings=settings)
    torch.testing.assert_close(operator.on("cpp")(x), function(x))
    assert operator.last_rung == "cpp"
    unlimited = BaseOperator(function, settings=settings_in(tmp_path / "other"))
    unlimited(x)
    assert unlimited.last_rung == "cpp"


@pytest.mark.falls_back
def test_a_checkpoint_saves_the_same_tensors_in_both_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The function saves more than kernels do, so a call in it waits, whether the build began there or before."""
    slowly(monkeypatch)
    operator = BaseOperator(function, settings=replace(settings_in(tmp_path), patience_s=0.0))
    given = x.clone().requires_grad_()
    for begins in ("in the checkpoint", "before it"):
        if begins == "before it":
            operator = BaseOperator(
                function, name="late", settings=replace(settings_in(tmp_path / "b"), patience_s=0.0)
            )
            operator(given)
            assert operator.is_building
        y = checkpoint(operator, given, use_reentrant=False)
        found = torch.autograd.grad(y.sum(), given)
        assert operator.last_rung == "cpp"
        torch.testing.assert_close(found, torch.autograd.grad(function(given).sum(), given))


@pytest.mark.falls_back
def test_a_module_is_served_once_its_kernels_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slowly(monkeypatch)
    monkeypatch.setenv("OPWRIGHT_PATIENCE", "0")
    monkeypatch.setenv("OPWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setenv("OPWRIGHT_TAPE", "off")
    layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.LayerNorm(4))
    served = opwright.module(layer)
    with pytest.warns(opwright.FallbackWarning, match="still being built"):
        torch.testing.assert_close(served(x), layer(x))
    assert "still being built" in served.explain()
    for _ in range(600):
        torch.testing.assert_close(served(x), layer(x))
        if served.last_rung == "cpp":
            return
        time.sleep(0.05)
    raise AssertionError(served.explain())

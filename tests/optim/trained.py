"""Parameters that an optimizer is run on, with the same gradients for each."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.optim import Optimizer

from opwright.optim.base import DerivedOptimizer
from opwright.optim.definition import STEP
from opwright.optim.serving.tables import TensorTable

SHAPES = ((7, 5), (5,), (), (2, 3, 4))
MATRICES = ((7, 5), (5, 9), (8, 8))


def parameters(
    shapes: Sequence[tuple[int, ...]] | None = None, dtype: torch.dtype = torch.float32
) -> list[torch.Tensor]:
    """The same parameters at each call, by default of SHAPES."""
    generator = torch.Generator().manual_seed(3)
    return [_drawn(shape, dtype, generator).requires_grad_() for shape in (SHAPES if shapes is None else shapes)]


def train(optimizer: Optimizer, steps: int, *, seed: int = 5) -> list[torch.Tensor]:
    """Take steps with drawn gradients, the same on each device; returns the parameters."""
    generator = torch.Generator().manual_seed(seed)
    params = [param for group in optimizer.param_groups for param in group["params"]]
    for _ in range(steps):
        for param in params:
            param.grad = _drawn(param.shape, param.dtype, generator).to(param.device)
        optimizer.step()
    return params


def trained(
    cls: type[Optimizer],
    steps: int = 20,
    shapes: Sequence[tuple[int, ...]] | None = None,
    dtype: torch.dtype = torch.float32,
    **hyper: Any,
) -> list[torch.Tensor]:
    """The parameters after some steps of an optimizer."""
    return train(cls(parameters(shapes, dtype), **copy.deepcopy(hyper)), steps)


def assert_same(ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> None:
    """Bit for bit."""
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=0, equal_nan=True)


def _drawn(shape: Sequence[int], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    wide = torch.complex128 if dtype.is_complex else torch.float64
    return torch.randn(tuple(shape), generator=generator, dtype=wide).to(dtype)


def assert_one_launch_for_each_step(optimizer: DerivedOptimizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the rates of its groups: five steps on a GPU are five tables, and five launches."""
    launches: list[int] = []
    copied = TensorTable._on_device
    monkeypatch.setattr(TensorTable, "_on_device", lambda table: launches.append(1) or copied(table))
    train(optimizer, 3)
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    train(optimizer, 2)
    assert len(launches) == 5
    assert {int(state[STEP]) for state in optimizer.state.values()} == {5}

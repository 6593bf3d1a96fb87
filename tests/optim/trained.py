"""Parameters that an optimizer is run on, with the same gradients for each."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch.optim import Optimizer

SHAPES = ((7, 5), (5,), (), (2, 3, 4))
MATRICES = ((7, 5), (5, 9), (8, 8))


def parameters(
    shapes: Sequence[tuple[int, ...]] | None = None, dtype: torch.dtype = torch.float32
) -> list[torch.Tensor]:
    """The same parameters at each call, by default of SHAPES."""
    generator = torch.Generator().manual_seed(3)
    return [_drawn(shape, dtype, generator).requires_grad_() for shape in (SHAPES if shapes is None else shapes)]


def train(optimizer: Optimizer, steps: int, *, seed: int = 5) -> list[torch.Tensor]:
    """Take steps with drawn gradients; returns the parameters."""
    generator = torch.Generator().manual_seed(seed)
    params = [param for group in optimizer.param_groups for param in group["params"]]
    for _ in range(steps):
        for param in params:
            param.grad = _drawn(param.shape, param.dtype, generator)
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

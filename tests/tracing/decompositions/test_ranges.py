"""Ranges inside of functions: with steps that do not divide them, backwards, of floats, and of sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from opwright import Operator


def ranges(x: Tensor) -> list[Tensor]:
    """Each with something of x, so that it is computed in a kernel."""
    size = x.shape[0]
    made = [
        torch.arange(size),
        torch.arange(1, size, 3),
        torch.arange(size, 0, -2),
        torch.arange(0.5, 2.0, 0.4),
        torch.arange(2.0, -1.0, -0.7),
        torch.arange(0, 2, 0.5, dtype=torch.float64),
        torch.arange(0, size, 2, dtype=torch.float32),
    ]
    return [each * x[0] for each in made]


def test_as_in_eager() -> None:
    operator = Operator(ranges, name="several_ranges")
    for size in (7, 8, 7, 2):
        x = torch.rand(size)
        for found, expected in zip(operator(x), ranges(x), strict=True):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            torch.testing.assert_close(found, expected)
        assert operator.last_rung == "cpp"

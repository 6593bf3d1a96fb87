"""Buffers that some calls change: the others write nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import opwright


class Tracked(nn.Module):
    """Follows the mean of its inputs where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.mean: Tensor
        self.register_buffer("mean", torch.zeros(4))
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor, update: bool = False) -> Tensor:
        if update:
            self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return x * self.weight - self.mean


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad])
def test_versions_count_changes_alone(mode: type) -> None:
    served, plain, x = opwright.module(Tracked()), Tracked(), torch.ones(3, 4)
    for update in (False, True, False, True, False, False, True, False):
        before = served.mean._version
        with mode():
            torch.testing.assert_close(served(x, update=update), plain(x, update=update))
        torch.testing.assert_close(served.mean, plain.mean)
        assert (served.mean._version > before) is update

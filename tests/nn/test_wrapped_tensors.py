"""Served modules that are called with wrappers of tensors, and change their buffers."""

import pytest
import torch
from torch import nn

import opwright


class Owned(opwright.tensors.Wrapper, data=("elem",), meta=("owner",)):
    @staticmethod
    def merge(metas):
        return metas[0]


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))


class ByHand(Counting):
    def forward(self, x):
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0))
        return x * 2


class ByAnother(Counting):
    def forward(self, x):
        self.mean = self.mean * 0.9 + x.detach().mean(0)
        return x * 2


@pytest.mark.falls_back
@pytest.mark.parametrize("make", [lambda: nn.Sequential(nn.BatchNorm1d(4)), ByHand, ByAnother])
def test_buffers_are_those_of_eager(make):
    written, served = make(), opwright.module(make())
    for _ in range(2):
        x = torch.randn(3, 4, requires_grad=True)
        results = [module(Owned(x, owner="me")) for module in (written, served)]
        torch.testing.assert_close(results[1].elem, results[0].elem)
        for ours, theirs in zip(served.buffers(), written.buffers(), strict=True):
            torch.testing.assert_close(getattr(ours, "elem", ours), getattr(theirs, "elem", theirs))
            assert (ours.requires_grad, ours.grad_fn) == (theirs.requires_grad, theirs.grad_fn)
    served(x).sum().backward()

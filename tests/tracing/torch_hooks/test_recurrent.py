"""Recurrent networks that drop between their layers: eager's results, gradients and random numbers."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import opwright
from tests.suite.nights import mostly_at_night

OPTIONS = ({}, {"bidirectional": True}, {"batch_first": True, "bias": False}, {"bidirectional": True, "num_layers": 3})
CASES = [*itertools.product((nn.LSTM, nn.GRU, nn.RNN), range(len(OPTIONS)))]


@pytest.mark.parametrize(("network", "which"), mostly_at_night(CASES, [(nn.LSTM, 0)]))
def test_they_drop_what_eager_drops(network, which):
    written = network(4, 3, **{"num_layers": 2, "dropout": 0.5} | OPTIONS[which])
    served, x = opwright.module(written), torch.randn(2, 2, 4, requires_grad=True)
    for training in (False, True):
        written.train(training)
        found = []
        for module in (written, served):
            torch.manual_seed(1)
            result, state = module(x)
            gradients = torch.autograd.grad(result.square().sum(), [x, *written.parameters()])
            found.append((result, state, gradients, torch.rand(2)))
        torch.testing.assert_close(*found)
        assert served.last_rung == "cpp"
    torch.manual_seed(2)
    assert not torch.equal(served(x)[0], found[1][0])


def test_where_all_is_dropped_nothing_is_drawn():
    written, x = nn.LSTM(4, 3, 2, dropout=1.0), torch.randn(2, 2, 4)
    found = []
    for module in (written, opwright.module(written)):
        torch.manual_seed(1)
        found.append((module(x), torch.rand(2)))
    torch.testing.assert_close(*found)

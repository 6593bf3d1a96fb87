"""Loops over chains of functions in stages: where they are made, and that values stay the same to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.codegen.cpp.loops import stages
from tests.suite.nights import mostly_at_night

CHAINS: dict[str, tuple[Callable[..., Tensor], int]] = {
    "one function": (lambda x, y: torch.exp(x) * torch.sin(y), 0),
    "two in a row": (lambda x, y: torch.log1p(torch.exp(x)) + y, 1),
    "three in a row": (lambda x, y: torch.tanh(torch.log1p(torch.exp(x))) * y, 2),
    "reduced": (lambda x, y: torch.exp(-torch.log1p(torch.exp(x * y))).mean(), 2),
    "one beside them": (lambda x, y: torch.log1p(torch.exp(x)) * torch.sigmoid(y), 2),
    "many beside them": (lambda x, y: torch.log1p(torch.exp(x)) * torch.sigmoid(y) * torch.tanh(x) * torch.exp(y), 0),
    "one is the same for a row": (lambda x, y: torch.exp(x - torch.exp(y[:, :1])), 0),
    "read again": (lambda x, y: (e := torch.exp(x)) * torch.log1p(e) * torch.where(y > 0, e, y), 1),
    "a factor of the row": (lambda x, y: torch.log1p(torch.exp(x * y[:, :1])) + y[:, :1], 1),
    "a factor of all": (lambda x, y: torch.log1p(torch.exp(x * y[0, 0])), 1),
    "a function of the row beside them": (lambda x, y: torch.log1p(torch.exp(x)) * torch.exp(y[:, :1]), 1),
    "a softmax of them": (lambda x, y: torch.softmax(torch.log1p(torch.exp(x)), -1), 0),
    "summed after a maximum": (lambda x, y: torch.log1p(torch.exp(x - x.amax(-1, keepdim=True))).sum(-1), 0),
    "masked": (lambda x, y: torch.where(y[:, :1] > 0, torch.log1p(torch.exp(x)), x), 1),
    "in double": (lambda x, y: torch.log1p(torch.exp(x.double())) + y, 0),
    "a loss": (lambda x, y: functional.binary_cross_entropy_with_logits(x, (y > 0).float()), 1),
}


BY_DAY = ("two in a row", "one is the same for a row", "masked", "a loss")


@pytest.mark.parametrize("name", mostly_at_night(CHAINS, BY_DAY))
def test_values(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of several runs, the last of them not full."""
    function, kept = CHAINS[name]
    x, y = torch.randn(3, 1100), torch.randn(3, 1100)
    staged = Operator(function)
    value = staged(x, y)
    source = str(staged.source())
    assert source.split("backward. Written")[0].count("_kept[sum_run];") == kept
    with monkeypatch.context() as patch:
        patch.setattr(stages, "_LEAST_DEPTH", 99)
        whole = Operator(function, name="whole")
        assert torch.equal(value, whole(x, y))
        assert "_kept[sum_run];" not in str(whole.source())
    torch.testing.assert_close(value, function(x, y))

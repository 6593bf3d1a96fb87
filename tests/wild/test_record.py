"""What the record of models tells: operations beside kernels are seen, those that kernels call are not counted."""

from __future__ import annotations

import torch
from torch.nn import functional

import opwright
from tests.wild.record import BY_PARTS, IN_PART, NOTHING, WHOLE, how_served, operations_beside

_WHOLE, _PARTS = "Model  kernels: 2 forward", "Model  its parts: it prints\n  layer Layer  kernels: 1 forward"


def test_operations_beside_kernels_are_counted() -> None:
    @opwright.operator(name="tests::beside_kernels")
    def gated(x: torch.Tensor) -> torch.Tensor:
        return x.sigmoid() * x.tanh()

    x = torch.randn(4, 4)
    gated(x)
    assert operations_beside(lambda: gated(x) @ x.flatten(1)) == {}
    assert operations_beside(lambda: (gated(x).exp() + x).exp()) == {"add": 1, "exp": 2}


def test_a_dropout_counts_if_it_drops() -> None:
    x = torch.randn(4, 4)
    assert operations_beside(lambda: functional.dropout(x, 0.0)) == {}
    assert operations_beside(lambda: functional.dropout(x, 0.5, training=False, inplace=True)) == {}
    assert operations_beside(lambda: functional.dropout(x, 0.5)) == {"dropout": 1}


def test_how_a_model_is_served() -> None:
    assert how_served(_WHOLE, {})["served"] == WHOLE
    assert how_served(_PARTS, {}) == {"served": BY_PARTS, "parts": 1, "beside": {}}
    assert how_served(_PARTS, {"exp": 1})["served"] == IN_PART
    assert how_served("Model  as written: it prints", {})["served"] == NOTHING

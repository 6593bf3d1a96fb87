"""A model that repeats a block is served by its parts, which are derived once."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import opwright
from opwright.nn.parts.repeats import why_by_parts
from opwright.operators.base import BaseOperator
from tests.nn.against_plain import compare


class Block(nn.Module):
    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(size, size), nn.LayerNorm(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tanh(self.norm(self.linear(x)))


class Model(nn.Module):
    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(blocks)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


MODELS: dict[str, tuple[nn.Module, bool]] = {
    "many equal blocks": (Model(6), True),
    "a row of them": (nn.Sequential(*[Block() for _ in range(6)]), True),
    "few": (Model(3), False),
    "of different sizes": (nn.ModuleDict({str(size): Block(size) for size in range(2, 8)}), False),
    "many layers without norms": (nn.Sequential(*[nn.Linear(4, 4) for _ in range(30)]), False),
}


@pytest.mark.parametrize(("model", "is_cut"), MODELS.values(), ids=MODELS)
def test_which_are_cut(model: nn.Module, is_cut: bool) -> None:
    assert (why_by_parts(model.children()) is not None) == is_cut


def test_blocks_are_derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = []
    derive = BaseOperator._derive_for
    monkeypatch.setattr(
        BaseOperator, "_derive_for", lambda self, *given: derived.append(self.name) or derive(self, *given)
    )
    told = compare(Model(6), [torch.randn(3, 8, requires_grad=True)]).explain()
    assert len(derived) == 1
    assert "it repeats Block 6 times" in told
    assert told.count("kernels: ") == 6


def test_depth_serves_all_of_it() -> None:
    whole = opwright.module(Model(6), depth=0)
    assert "repeats" not in whole.explain()

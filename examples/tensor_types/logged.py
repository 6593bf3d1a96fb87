"""Tensors that tell what is done with them; and the same for plain tensors, in a block."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import nn

import opwright
from opwright.tensors.logging.call import Call


class Logged(opwright.tensors.Logging):
    """Prints each call."""


class Counted(opwright.tensors.Logging):
    """Counts calls by name."""

    count: ClassVar[dict[str, int]] = {}

    @classmethod
    def note(cls, call: Call) -> None:
        cls.count[call.name] = cls.count.get(call.name, 0) + 1


if __name__ == "__main__":
    x = Logged([1.0, 2.0])
    y = torch.add(x, torch.ones(2), alpha=2)  # torch.add(Logged[2] float32, Tensor[2] float32, alpha=2)
    print(y)  # Logged(tensor([3., 4.]))
    counted = Counted(torch.randn(4, 3))
    nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))(counted).sum()
    print(Counted.count)
    norm, plain = nn.LayerNorm(3), torch.randn(4, 3)
    with opwright.tensors.log() as calls:
        norm(plain).mean()
    print(*calls, sep="\n")

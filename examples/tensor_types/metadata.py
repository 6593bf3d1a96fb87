"""A tensor that knows where it comes from, through every operation, on either side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import opwright


class Sourced(opwright.tensors.Wrapper, data=("elem",), meta=("sources",)):
    """A tensor and the names of the data that it was computed from."""

    @staticmethod
    def merge(metas: Sequence[Any]) -> Any:
        return metas[0]._replace(sources=frozenset().union(*(meta.sources for meta in metas)))


@opwright.operator
def gated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(y)


if __name__ == "__main__":
    x = Sourced(torch.ones(3), {"survey"}).requires_grad_()
    y = Sourced(torch.zeros(3), {"census"})
    print(torch.ones(3) + x[:1])
    result = gated(x, y)  # the kernel runs on what is inside
    print(sorted(result.sources), gated.last_rung)  # ['census', 'survey'] cpp
    result.sum().backward()
    print(sorted(x.grad.sources), x.grad.densify())  # ['census', 'survey'] tensor([0.5000, 0.5000, 0.5000])

"""S21: a wrapper with metadata, which travels through functions with a plain tensor on either side."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import nn

import opwright


class MetadataTensor(opwright.tensors.Wrapper, data=("elem",), meta=("metadata",)):
    @staticmethod
    def merge(metas: Sequence[Any]) -> Any:
        return metas[0]


@opwright.operator
def s21_gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * torch.sigmoid(y)


def of(*sizes: int) -> Any:
    return MetadataTensor(torch.rand(*sizes), metadata={"owner": "Ministry of Silly Walks"})


CALLS: tuple[Callable[[Any, Any], Any], ...] = (
    torch.add,
    torch.mul,
    torch.matmul,
    lambda x, y: torch.cat([x, y]),
    lambda x, y: torch.stack([x, y]).sum(0),
    lambda x, y: torch.where(x > y, x, y),
    lambda x, y: nn.functional.linear(x, y),
    lambda x, y: torch.einsum("ij,jk->ik", x, y),
    lambda x, y: x.softmax(-1)[:, 1:] - y.t()[:, :2],
    s21_gate,
)


@pytest.mark.parametrize("call", CALLS)
def test_metadata_travels_with_a_tensor_on_either_side(call: Callable[[Any, Any], Any]) -> None:
    x, y = of(3, 3), torch.rand(3, 3)
    for first, second in ((x, y), (y, x), (x, x)):
        result = call(first, second)
        assert result.metadata == {"owner": "Ministry of Silly Walks"}
        plain = [value.elem if isinstance(value, MetadataTensor) else value for value in (first, second)]
        torch.testing.assert_close(result.elem, call(*plain))


def test_operators_run_their_kernels() -> None:
    s21_gate(of(3), torch.rand(3))
    assert s21_gate.last_rung == "cpp"


def test_it_is_trained_saved_and_loaded() -> None:
    model = nn.Linear(3, 2)
    model.weight = nn.Parameter(of(2, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    before = model.weight.elem.clone()
    model(torch.rand(4, 3)).square().sum().backward()
    assert model.weight.grad.metadata["owner"].startswith("Ministry")
    optimizer.step()
    assert not torch.equal(model.weight.elem, before)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    assert state["weight"].metadata["owner"].startswith("Ministry")
    twin = copy.deepcopy(model)
    twin.load_state_dict(state)
    assert torch.equal(twin.weight.elem, model.weight.elem)
    assert twin.double().weight.metadata["owner"].startswith("Ministry")

"""A served module has the tensors of the one it was made from, and is copied and saved as it is."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import nn

import opwright


def _plain() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4))


def test_tensors_are_the_modules_own() -> None:
    plain = _plain()
    served = opwright.module(plain)
    assert list(served.state_dict()) == list(plain.state_dict())
    assert [id(p) for p in served.parameters()] == [id(p) for p in plain.parameters()]
    assert [id(b) for b in served.buffers()] == [id(b) for b in plain.buffers()]
    assert isinstance(served, nn.Sequential)
    assert repr(served) == repr(plain)
    assert opwright.module(served) is served


def _saved(module: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), _saved])
def test_copies_are_served_and_independent(copied: Callable[[nn.Module], nn.Module]) -> None:
    served = opwright.module(_plain()).eval()
    x = torch.randn(5, 6)
    expected = served(x)
    twin = copied(served)
    with torch.no_grad():
        served[0].weight.zero_()
    torch.testing.assert_close(twin(x), expected)
    assert twin.last_rung == "cpp"


def test_state_goes_round() -> None:
    served, other = opwright.module(_plain()), opwright.module(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)))
    x = torch.randn(5, 6)
    served(x)
    other.load_state_dict(served.state_dict())
    torch.testing.assert_close(other.eval()(x), served.eval()(x))
    assert other[1].num_batches_tracked.item() == 1


def test_dtype_and_mode_change() -> None:
    served = opwright.module(_plain())
    x = torch.randn(5, 6)
    assert served(x).dtype is torch.float32
    served.double().eval()
    assert not served[1].training
    found = served(x.double())
    expected = served[1].forward(served[0](x.double()))
    torch.testing.assert_close(found, expected)
    assert (found.dtype, served.last_rung) == (torch.float64, "cpp")


def test_names_that_kernels_cannot_use() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name in ("signed", "a-b", "a_b", "_a_b"):
                self.register_parameter(name, nn.Parameter(torch.randn(3)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            tensors = self._parameters
            return x * tensors["signed"] + tensors["a-b"].sin() * tensors["a_b"] - tensors["_a_b"]

    served = opwright.module(Named())
    x = torch.randn(4, 3)
    torch.testing.assert_close(served(x), Named.forward(served, x))
    assert served.last_rung == "cpp"

"""S17: modules around operators, and modules that run as one operator."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

import opwright
from tests.systems.by_hand import by_hand

pytestmark = pytest.mark.built_together


class Linear(nn.Module):
    """As in PyTorch's documents, around the operator of S01."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.weight = nn.Parameter(torch.randn(outputs, inputs))
        self.register_parameter("bias", nn.Parameter(torch.randn(outputs)) if bias else None)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return torch.tanh(by_hand("linear", "linear").on("function")(x, self.weight, self.bias))

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, outputs={self.outputs}, bias={self.bias is not None}"


class Layer(nn.Module):
    """A layer of a network whose forward runs as one operator."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(nn.functional.linear(x, self.weight) + self.shift)


def modules() -> dict[str, nn.Module]:
    return {
        "around an operator": Linear(3, 4),
        "as one operator": opwright.module(Layer()),
        "convolution and batch norm": by_hand("conv_bn", "FusedConvBN")(3, 4, 2),
    }


def argument(which: str) -> Tensor:
    return torch.randn((2, 3, 4, 4) if which.startswith("convolution") else (2, 3), requires_grad=True)


@pytest.mark.parametrize("which", modules())
def test_state_travels(which: str) -> None:
    module, other = modules()[which], modules()[which]
    x = argument(which)
    assert set(dict(module.named_parameters())) >= {"weight"}
    other.load_state_dict(module.state_dict())
    torch.testing.assert_close(other(x), module(x))
    torch.testing.assert_close(copy.deepcopy(module)(x), module(x))
    double = module.to(torch.float64)
    assert double(x.double()).dtype == double.weight.dtype == torch.float64
    double(x.double()).sum().backward()
    assert double.weight.grad is not None


def test_an_optional_bias_is_registered() -> None:
    plain = Linear(3, 4, bias=False)
    assert plain._parameters["bias"] is None
    assert set(plain.state_dict()) == {"weight", "calls"}
    assert repr(plain) == "Linear(inputs=3, outputs=4, bias=False)"
    x = torch.randn(2, 3)
    torch.testing.assert_close(plain(x), torch.tanh(x @ plain.weight.t()))
    assert int(plain.calls) == 1
    assert repr(modules()["convolution and batch norm"]) == "FusedConvBN(3, 4, kernel=2)"


@pytest.mark.falls_back  # a served module runs its own forward while there are global hooks, and says so
@pytest.mark.parametrize("which", modules())
def test_hooks_fire_in_order_and_global_ones_first(which: str) -> None:
    module, x, seen = modules()[which], argument(which), []
    own = {
        "forward_pre_hook": module.register_forward_pre_hook,
        "forward_hook": module.register_forward_hook,
        "full_backward_hook": module.register_full_backward_hook,
    }
    handles = [
        getattr(nn.modules.module, f"register_module_{name}")(lambda *_, name=name: seen.append(f"global {name}"))
        for name in own
    ]
    for name, register in own.items():
        register(lambda *_, name=name: seen.append(name))
    try:
        module(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [each for name in own for each in (f"global {name}", name)]

"""Modules that hold what others seldom do: empty tensors, and graphs of torch.fx, whose classes are made for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import opwright


class WithABias(nn.Module):
    """As e3nn and others have it: without a bias, the bias is an empty buffer."""

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 9).view(3, 3))
        self.register_buffer("bias", torch.linspace(1, 2, elements))

    def forward(self, x: Tensor) -> Tensor:
        made = (x @ self.weight).sin()
        return made + self.bias if self.bias.numel() > 0 else made.cos()


def fill(module: WithABias) -> None:
    module.bias = torch.ones(3)


def fill_in_place(module: WithABias) -> None:
    module.bias.resize_(3).fill_(2)


def exchange_data(module: WithABias) -> None:
    module.bias.data = torch.full((3,), 3.0)


X = torch.linspace(0, 1, 12).view(4, 3)


@pytest.mark.parametrize("change", [fill, fill_in_place, exchange_data])
def test_an_empty_buffer_keeps_no_module_from_its_kernels(change: Callable[[WithABias], None]) -> None:
    module = WithABias(0)
    served = opwright.module(module)
    for _ in range(2):
        torch.testing.assert_close(served(X), module(X))
        assert served.last_rung == "cpp"
    change(module)
    torch.testing.assert_close(served(X), module(X))
    module.bias = torch.zeros(0)
    torch.testing.assert_close(served(X), module(X))


def test_nor_an_operator_that_calls_it() -> None:
    module = WithABias(0)

    def called(x: Tensor) -> Tensor:
        return module(x) * 2

    operator = opwright.operator(called)
    torch.testing.assert_close(operator(X), called(X))
    assert operator.last_rung == "cpp"
    fill(module)
    torch.testing.assert_close(operator(X), called(X))


class Inner(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(x) * 2 + x


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.fx.symbolic_trace(Inner())

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).exp()


def test_a_graph_inside_has_kernels_until_it_is_another_one() -> None:
    module = Around()
    served = opwright.module(module)

    def called(x: Tensor) -> Tensor:
        return module(x) + 1

    operator = opwright.operator(called)
    for _ in range(2):
        torch.testing.assert_close((served(X), operator(X)), (module(X), called(X)))
        assert served.last_rung == operator.last_rung == "cpp"
    for node in module.inner.graph.nodes:
        if node.target is torch.sin:
            node.target = torch.cos
    module.inner.recompile()
    torch.testing.assert_close(module(X), (X.cos() * 2 + X).exp())
    torch.testing.assert_close((served(X), operator(X)), (module(X), called(X)))


class Scaled(nn.Module):
    def forward(self, x: Tensor, scale: float = 2.0, *, mask: Tensor | None = None) -> Tensor:
        """Scale what is not masked."""
        return x * scale if mask is None else x * scale * mask


def test_a_forward_tells_what_it_takes() -> None:
    """Trainers choose columns by it, and exporters name inputs."""
    module, served = Scaled(), opwright.module(Scaled())
    assert inspect.signature(served.forward) == inspect.signature(module.forward)
    assert served.forward.__doc__ == Scaled.forward.__doc__
    rows = torch.export.Dim("rows")
    exported = torch.export.export(served, (X,), dynamic_shapes={"x": {0: rows}})
    assert next(each.name for each in exported.graph.nodes if each.op == "placeholder") == "x"
    torch.testing.assert_close(exported.module()(X[:3]), X[:3] * 2)

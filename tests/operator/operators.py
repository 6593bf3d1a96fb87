"""Small operators that the tests of this folder call."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import opwright


@opwright.operator
def wave(x: Tensor) -> Tensor:
    return torch.sin(x) * x


@opwright.operator
def cube(x: Tensor) -> Tensor:
    return x * x * x


@opwright.operator
def mix(x: Tensor, y: Tensor) -> Tensor:
    return x * torch.exp(-y) + y * y


@opwright.operator
def shift(x: Tensor) -> Tensor:
    return x + 1


@opwright.operator
def scaled_to_power(x: Tensor, scale: float = 2.0, power: int = 2, negate: bool = False) -> Tensor:
    y = scale * x**power
    return -y if negate else y


@opwright.operator
def activated(x: Tensor, kind: str = "tanh") -> Tensor:
    return torch.tanh(x) if kind == "tanh" else torch.sigmoid(x)


@opwright.operator
def divided(x: Tensor, by: float) -> Tensor:
    return x / by


@opwright.operator
def biased(x: Tensor, bias: Tensor | None, residual: Tensor | None = None) -> Tensor:
    y = torch.tanh(x)
    if bias is not None:
        y = y + bias
    if residual is not None:
        y = y * residual
    return y


@opwright.operator
def polar(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sqrt(x * x + y * y + 1), torch.sin(x) * y


@opwright.operator
def twins(x: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.sin(x)
    return y, y


@opwright.operator
def ranked(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A float, a bool and an int output."""
    return x * y, x > y, (x > 0).to(torch.int64) * 3


@opwright.operator
def half_detached(x: Tensor, detached: bool) -> tuple[Tensor, Tensor]:
    return torch.sin(x), (x.detach() * 3 if detached else x**3)


@opwright.operator
def second_only(x: Tensor, y: Tensor) -> Tensor:
    return torch.cos(x) + (y > 0)


@opwright.operator(name="opwright::small_lltm")
def lltm(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + F.elu(g) * torch.sigmoid(i)
    return torch.tanh(cell) * torch.sigmoid(o), cell


@opwright.operator
def linear_tanh(x: Tensor, weight: Tensor) -> Tensor:
    return torch.tanh(F.linear(x, weight))

"""Operators with containers in their parameters and results."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

import opwright


class State(NamedTuple):
    hidden: Tensor
    cell: Tensor


class Layers(NamedTuple):
    weights: list[Tensor]
    bias: Tensor | None


@opwright.operator
def joined(parts: list[Tensor], scale: float = 2.0) -> Tensor:
    return torch.cat([torch.sin(part) for part in parts]) * scale


@opwright.operator
def pair(parts: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    return parts[0] * parts[1], parts[0] - parts[1]


@opwright.operator
def ordered(parts: Sequence[Tensor]) -> list[Tensor]:
    return [torch.tanh(part) for part in parts]


@opwright.operator
def named(parts: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: torch.exp(part) for name, part in parts.items()}


@opwright.operator
def stepped(state: State, layers: Layers, *, steps: int = 2) -> State:
    hidden, cell = state
    for weight in layers.weights:
        hidden = torch.tanh(hidden @ weight + (0 if layers.bias is None else layers.bias))
        cell = cell * hidden * steps
    return State(hidden, cell)


@opwright.operator
def deep(tree: dict[str, list[tuple[Tensor, float]]]) -> Tensor:
    return sum(part * factor for part, factor in tree["leaves"])


@opwright.operator
def optional_parts(parts: list[Tensor | None], bias: Tensor | None = None) -> Tensor:
    total = sum(part * part for part in parts if part is not None)
    return total if bias is None else total + bias


@opwright.operator
def by_keyword(x: Tensor, *, y: Tensor, power: int = 3) -> Tensor:
    return torch.sin(x) * y**power


@opwright.operator
def turned(x: Tensor, axes: tuple[int, ...] = (1, 0), dtype: torch.dtype = torch.float64) -> Tensor:
    return x.permute(axes).to(dtype) * 2


@opwright.operator
def either(x: Tensor, factor: float | Tensor | None = None) -> Tensor:
    return torch.cos(x) if factor is None else torch.cos(x) * factor


@opwright.operator
def nested_results(x: Tensor):
    y = torch.sin(x)
    return {"y": y, "again": [y, (x, None)], "numbers": (3, 2.5, True, "text"), "z": y * x}


@opwright.operator
def given_back(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x, x * y, y

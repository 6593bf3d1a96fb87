"""Operators to explain; making one derives nothing."""

import itertools

import torch
from torch.nn import functional

import opwright

_numbers = itertools.count()
CELL_SAMPLES = opwright.shapes("B 3*S", "B S", B=16, S=128)


def cell(gates: torch.Tensor, old_cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    new_cell = old_cell + functional.elu(g) * torch.sigmoid(i)
    return torch.tanh(new_cell) * torch.sigmoid(o), new_cell


def affine(x: torch.Tensor, weight: torch.Tensor, slope: float = 0.5) -> torch.Tensor:
    return torch.relu(x @ weight) * slope


def cast(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float8_e5m2)


def make(reference, samples=None, namespace=None):
    """Make an operator, under a name of its own unless a namespace is given."""
    namespace = namespace or f"explain_{next(_numbers)}"
    return opwright.operator(name=f"{namespace}::{reference.__name__}", samples=samples)(reference)

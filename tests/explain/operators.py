"""Operators to explain; making one derives nothing."""

import torch
from torch.nn import functional

import opwright

CELL_SAMPLES = opwright.shapes("B 3*S", "B S", B=16, S=128)


def cell(gates: torch.Tensor, old_cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    new_cell = old_cell + functional.elu(g) * torch.sigmoid(i)
    return torch.tanh(new_cell) * torch.sigmoid(o), new_cell


def affine(x: torch.Tensor, weight: torch.Tensor, slope: float = 0.5) -> torch.Tensor:
    return torch.relu(x @ weight) * slope


def cast(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float8_e5m2)


def make(reference, samples=None):
    return opwright.operator(name=f"explain_tests::{reference.__name__}", samples=samples)(reference)

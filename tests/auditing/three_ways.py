"""One small operator in three ways: as a function, with `torch.library.custom_op`, and as an `autograd.Function`."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import opwright

SAMPLES = opwright.shapes("B 3*S", "B S", B=4, S=8)


def reference(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + F.elu(g) * torch.sigmoid(i)
    return torch.tanh(cell) * torch.sigmoid(o), cell


@opwright.operator(name="three_ways::cell_by_opwright", samples=SAMPLES)
def cell_by_opwright(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    return reference(gates, old_cell)


@torch.library.custom_op("three_ways::cell", mutates_args=())
def cell_by_library(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    return reference(gates, old_cell)


@cell_by_library.register_fake
def _(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(old_cell), torch.empty_like(old_cell)


def gradients(gates: Tensor, cell: Tensor, d_hidden: Tensor, d_cell: Tensor) -> tuple[Tensor, Tensor]:
    """The derivatives by hand, in operations that can be differentiated again."""
    i, o, g = gates.chunk(3, dim=-1)
    sigma_i, sigma_o, tanh = torch.sigmoid(i), torch.sigmoid(o), torch.tanh(cell)
    d_cell = d_cell + d_hidden * sigma_o * (1 - tanh * tanh)
    d_i = d_cell * F.elu(g) * sigma_i * (1 - sigma_i)
    d_o = d_hidden * tanh * sigma_o * (1 - sigma_o)
    d_g = d_cell * sigma_i * torch.where(g > 0, torch.ones_like(g), torch.exp(g))
    return torch.cat([d_i, d_o, d_g], dim=-1), d_cell


def keep(ctx, inputs, output):
    gates, _ = inputs
    _, cell = output
    ctx.save_for_backward(gates, cell)


def differentiate(ctx, d_hidden, d_cell):
    gates, cell = ctx.saved_tensors
    return gradients(gates, cell, d_hidden, d_cell)


cell_by_library.register_autograd(differentiate, setup_context=keep)


class CellByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gates, old_cell):
        hidden, cell = reference(gates, old_cell)
        ctx.save_for_backward(gates, cell)
        return hidden, cell

    @staticmethod
    def backward(ctx, d_hidden, d_cell):
        return differentiate(ctx, d_hidden, d_cell)


WAYS = {
    "opwright": cell_by_opwright,
    "custom_op": cell_by_library,
    "autograd.Function": CellByHand,
}

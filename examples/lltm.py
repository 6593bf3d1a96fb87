"""LLTM, a "long-long-term memory" cell: an LSTM without a forget gate and with an ELU for its candidate.

opwright check examples/lltm.py
opwright bench examples/lltm.py
"""

import torch
import torch.nn.functional as F

import opwright

sizes = opwright.shapes("B 3*S", "B S", B=(16, 64, 256, 1024), S=(128, 128, 1024, 4096))


@opwright.operator(samples=sizes)
def lltm_cell(gates: torch.Tensor, old_cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The element-wise part: three gates and the old cell in, the new hidden state and cell out."""
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + F.elu(g) * torch.sigmoid(i)
    hidden = torch.tanh(cell) * torch.sigmoid(o)
    return hidden, cell


@opwright.operator(
    samples=opwright.shapes(
        "B F", "B S", "B S", "3*S F+S", "3*S", B=(16, 64, 256), F=(32, 1024, 1024), S=(128, 128, 1024)
    )
)
def lltm(
    x: torch.Tensor, old_hidden: torch.Tensor, old_cell: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """One whole step."""
    gates = F.linear(torch.cat([old_hidden, x], dim=1), weight, bias)
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + F.elu(g) * torch.sigmoid(i)
    hidden = torch.tanh(cell) * torch.sigmoid(o)
    return hidden, cell

"""The element-wise parts of recurrent cells, after their products with weights."""

from __future__ import annotations

import torch
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import drawn

_STATES = {"N": (16, 256, 1024), "S": (128, 1024, 2048)}


@operator(name="opwright_library::lstm_cell", samples=drawn("N 4*S", "N S", **_STATES))
def lstm_cell(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Step a long short-term memory.

        c' = σ(f) · c + σ(i) · tanh(g), h' = σ(o) · tanh(c')

    Args:
        gates: i, f, g and o one after the other, (..., 4 S), floating.
        cell: c, (..., S).

    Returns:
        h' and c', each (..., S), of the dtype of the arguments.

    Raises:
        RuntimeError: The gates have another size than four times the cell's.

    Source:
        Gers et al., Learning to Forget, 2000; gates in the order of torch.nn.LSTMCell.
    """
    i, f, g, o = gates.chunk(4, dim=-1)
    new = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new), new


@operator(name="opwright_library::gru_cell", samples=drawn("N 3*S", "N 3*S", "N S", **_STATES))
def gru_cell(from_input: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
    """Step a gated recurrent unit.

        r = σ(a_r + b_r), z = σ(a_z + b_z), n = tanh(a_n + r · b_n), h' = (1 - z) · n + z · h

    Args:
        from_input: a: r, z and n of the input one after the other, (..., 3 S), floating.
        from_hidden: b, those of the hidden state, (..., 3 S).
        hidden: h, (..., S).

    Returns:
        h', (..., S), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not fit.

    Source:
        Cho et al., Learning Phrase Representations, 2014, arXiv:1406.1078; in the form of torch.nn.GRUCell.
    """
    a_r, a_z, a_n = from_input.chunk(3, dim=-1)
    b_r, b_z, b_n = from_hidden.chunk(3, dim=-1)
    r, z = torch.sigmoid(a_r + b_r), torch.sigmoid(a_z + b_z)
    n = torch.tanh(a_n + r * b_n)
    return (1.0 - z) * n + z * hidden

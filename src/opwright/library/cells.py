"""The element-wise parts of recurrent cells, after their products with weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
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


@operator(name="opwright_library::peephole_lstm_cell", samples=drawn("N 4*S", "N S", "3*S", **_STATES))
def peephole_lstm_cell(gates: Tensor, cell: Tensor, peepholes: Tensor) -> tuple[Tensor, Tensor]:
    """Step a long short-term memory whose gates see the cell.

        c' = σ(f + p_f · c) · c + σ(i + p_i · c) · tanh(g), h' = σ(o + p_o · c') · tanh(c')

    Args:
        gates: i, f, g and o one after the other, (..., 4 S), floating.
        cell: c, (..., S).
        peepholes: p_i, p_f and p_o one after the other, (3 S).

    Returns:
        h' and c', each (..., S), of the dtype of the arguments.

    Raises:
        RuntimeError: The gates have another size than four times the cell's, or the peepholes than three times.

    Source:
        Gers and Schmidhuber, Recurrent Nets that Time and Count, 2000, equations 1 to 5.
    """
    i, f, g, o = gates.chunk(4, dim=-1)
    on_i, on_f, on_o = peepholes.chunk(3, dim=-1)
    new = torch.sigmoid(f + on_f * cell) * cell + torch.sigmoid(i + on_i * cell) * torch.tanh(g)
    return torch.sigmoid(o + on_o * new) * torch.tanh(new), new


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


@operator(name="opwright_library::lltm_cell", samples=drawn("N 3*S", "N S", **_STATES))
def lltm_cell(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Step a long-long-term memory: no gate forgets, and ELU is the candidate.

        c' = c + σ(i) · elu(g), h' = σ(o) · tanh(c')

    Args:
        gates: i, o and g one after the other, (..., 3 S), floating.
        cell: c, (..., S).

    Returns:
        h' and c', each (..., S), of the dtype of the arguments.

    Raises:
        RuntimeError: The gates have another size than three times the cell's.

    Source:
        PyTorch's tutorial on C++ extensions.
    """
    i, o, g = gates.chunk(3, dim=-1)
    new = cell + F.elu(g) * torch.sigmoid(i)
    return torch.tanh(new) * torch.sigmoid(o), new


@operator(name="opwright_library::minimal_gru_cell", samples=drawn("N S", "N S", "N S", **_STATES))
def minimal_gru_cell(gate: Tensor, candidate: Tensor, hidden: Tensor) -> Tensor:
    """Step a minimal gated recurrent unit, whose gate and candidate see the input alone.

        h' = (1 - σ(z)) · h + σ(z) · g(n), g(n) = n + ½ where n ≥ 0, σ(n) elsewhere

    Args:
        gate: z, (..., S), floating.
        candidate: n, as the gate.
        hidden: h, as the gate.

    Returns:
        h', (..., S), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Feng et al., Were RNNs All We Needed?, 2024, arXiv:2410.01201, appendix B.
    """
    z = torch.sigmoid(gate)
    new = torch.where(candidate >= 0, candidate + 0.5, torch.sigmoid(candidate))
    return (1.0 - z) * hidden + z * new

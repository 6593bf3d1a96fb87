"""The ready operators by other formulas: of torch's own functions and distributions, or of Python's floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import distributions, nn
from torch.nn import functional

Tensor = torch.Tensor


def each(formula: Callable[..., float]) -> Callable[..., Tensor]:
    """Compute a formula of Python's floats element by element."""

    def of_tensors(*tensors: Tensor) -> Tensor:
        given = torch.broadcast_tensors(*tensors)
        rows = zip(*(one.flatten().tolist() for one in given), strict=True)
        return torch.tensor([formula(*row) for row in rows], dtype=torch.float64).view(given[0].shape)

    return of_tensors


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def normal_below(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


def softmax(x: list[float]) -> list[float]:
    raised = [math.exp(v) for v in x]
    return [v / sum(raised) for v in raised]


def lstm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    size = cell.shape[-1]
    module = nn.LSTMCell(4 * size, size, bias=False).double()
    module.weight_ih.data, module.weight_hh.data = torch.eye(4 * size).double(), torch.zeros(4 * size, size).double()
    return module(gates, (torch.zeros_like(cell), cell))


def gru(from_input: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
    """torch's cell, row by row, where biases are what the hidden state gives."""
    size = hidden.shape[-1]
    rows = []
    for a, b, h in zip(from_input, from_hidden, hidden, strict=True):
        weights = torch.eye(3 * size).double(), torch.zeros(3 * size, size).double()
        rows.append(torch.gru_cell(a[None], h[None], *weights, torch.zeros(3 * size).double(), b)[0])
    return torch.stack(rows)


def masked_softmax(x: Tensor, hidden: Tensor) -> Tensor:
    raised = torch.exp(x / 8) * ~hidden
    return raised / raised.sum(-1, keepdim=True)


def rows_of_boxes(formula: Callable[..., float]) -> Callable[..., Tensor]:
    def of_tensors(first: Tensor, second: Tensor) -> Tensor:
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        return torch.tensor([formula(a, b) for a, b in pairs], dtype=torch.float64)

    return of_tensors


def area(box: list[float]) -> float:
    return max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0)


def union_and_overlap(a: list[float], b: list[float]) -> tuple[float, float]:
    shared = area([max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])])
    union = area(a) + area(b) - shared
    return union, shared / union


def around(a: list[float], b: list[float]) -> list[float]:
    return [min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])]


def generalized_iou(a: list[float], b: list[float]) -> float:
    union, overlap = union_and_overlap(a, b)
    both = area(around(a, b))
    return 1 - overlap + (both - union) / both


def normal(mean: Tensor, log_variance: Tensor) -> distributions.Normal:
    return distributions.Normal(mean, (log_variance / 2).exp())


FORMULAS: Mapping[str, Callable[..., Tensor | tuple[Tensor, ...]]] = {
    "swiglu": each(lambda x, g: x * g * sigmoid(g)),
    "bias_gelu": each(lambda x, b: (x + b) * normal_below(x + b)),
    "distillation_loss": lambda s, t: (
        4 * functional.kl_div((s / 2).log_softmax(-1), (t / 2).softmax(-1), reduction="batchmean")
    ),
    "lstm_cell": lstm,
    "gru_cell": gru,
    "masked_softmax": masked_softmax,
    "capped_softmax": lambda x: functional.softmax(each(lambda v: 50 * math.tanh(v / 50))(x), -1),
    "generalized_iou_loss": rows_of_boxes(generalized_iou),
    "normal_nll": lambda m, s, t: -normal(m, s).log_prob(t).mean(),
    "matern_kernel": each(lambda r: (1 + 5**0.5 * r + 5 * r * r / 3) * math.exp(-(5**0.5) * r)),
}
"""Formulas of the arguments of the samples; numbers are the defaults."""

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


def mean_of(formula: Callable[..., float]) -> Callable[..., Tensor]:
    return lambda *tensors: each(formula)(*tensors).mean()


def mean_of_rows(formula: Callable[..., float]) -> Callable[..., Tensor]:
    """Compute a formula of lists of floats, row by row."""

    def of_tensors(*tensors: Tensor) -> Tensor:
        rows = zip(*(one.tolist() for one in tensors), strict=True)
        return torch.tensor([formula(*row) for row in rows], dtype=torch.float64).mean()

    return of_tensors


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def normal_below(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


def softmax(x: list[float]) -> list[float]:
    raised = [math.exp(v) for v in x]
    return [v / sum(raised) for v in raised]


def rms(x: Tensor) -> Tensor:
    return x / (x.norm(dim=-1, keepdim=True) ** 2 / x.shape[-1] + 1e-6).sqrt()


def smooth_cross_entropy(x: list[float], t: int) -> float:
    p = softmax(x)
    return -0.9 * math.log(p[t]) - 0.1 * sum(map(math.log, p)) / len(p)


def z_loss(x: list[float], t: int) -> float:
    return -math.log(softmax(x)[t]) + 1e-4 * math.log(sum(map(math.exp, x))) ** 2


def jensen_shannon(x: list[float], y: list[float]) -> float:
    def divergence(a: list[float], b: list[float]) -> float:
        return sum(u * math.log(u / v) for u, v in zip(a, b, strict=True))

    p, q = softmax(x), softmax(y)
    middle = [(u + v) / 2 for u, v in zip(p, q, strict=True)]
    return divergence(p, middle) / 2 + divergence(q, middle) / 2


def dice(x: list[float], t: list[float]) -> float:
    p = list(map(sigmoid, x))
    return 1 - (2 * sum(a * b for a, b in zip(p, t, strict=True)) + 1) / (sum(p) + sum(t) + 1)


def masked_mse(x: Tensor, target: Tensor, hidden: Tensor) -> Tensor:
    return functional.mse_loss(x[~hidden], target[~hidden])


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


def peephole(gates: Tensor, cell: Tensor, peepholes: Tensor) -> tuple[Tensor, Tensor]:
    """A plain cell, whose gates have got the peepholes' part before; the last gate sees the new cell."""
    zero = torch.zeros_like(cell)
    on_i, on_f, on_o = peepholes.view(3, -1)
    seen = gates + torch.cat((on_i * cell, on_f * cell, zero, zero), -1)
    _, new = lstm(seen, cell)
    return lstm(seen + torch.cat((zero, zero, zero, on_o * new), -1), cell)


def minimal_gru(z: float, n: float, h: float) -> float:
    return (1 - sigmoid(z)) * h + sigmoid(z) * (n + 0.5 if n >= 0 else sigmoid(n))


def lltm_cell(i: float, o: float, g: float, c: float) -> tuple[float, float]:
    new = c + (g if g > 0 else math.expm1(g)) * sigmoid(i)
    return sigmoid(o) * math.tanh(new), new


def lltm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    parts = (*gates.chunk(3, -1), cell)
    return each(lambda *v: lltm_cell(*v)[0])(*parts), each(lambda *v: lltm_cell(*v)[1])(*parts)


def turned(first: Tensor, second: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return torch.complex(first, second) * torch.complex(cos, sin)


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    x1, x2 = x[..., :half], x[..., half:]
    low, high = (cos[..., :half], sin[..., :half]), (cos[..., half:], sin[..., half:])
    return torch.cat((turned(x1, x2, *low).real, turned(x1, x2, *high).imag), -1)


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


def complete_iou(a: list[float], b: list[float]) -> float:
    _, overlap = union_and_overlap(a, b)
    left, top, right, bottom = around(a, b)
    centers = [((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in (a, b)]
    apart = math.dist(*centers) ** 2 / ((right - left) ** 2 + (bottom - top) ** 2)
    angles = [math.atan((box[2] - box[0]) / (box[3] - box[1])) for box in (a, b)]
    unlike = 4 / math.pi**2 * (angles[0] - angles[1]) ** 2
    return 1 - overlap + apart + unlike**2 / (1 - overlap + unlike)


def normal(mean: Tensor, log_variance: Tensor) -> distributions.Normal:
    return distributions.Normal(mean, (log_variance / 2).exp())


FORMULAS: Mapping[str, Callable[..., Tensor | tuple[Tensor, ...]]] = {
    "swiglu": each(lambda x, g: x * g * sigmoid(g)),
    "geglu": each(lambda x, g: x * g * normal_below(g)),
    "geglu_tanh": each(lambda x, g: x * g * sigmoid(2 * math.sqrt(2 / math.pi) * (g + 0.044715 * g**3))),
    "bias_gelu": each(lambda x, b: (x + b) * normal_below(x + b)),
    "bias_gelu_residual": each(lambda x, b, r: (x + b) * normal_below(x + b) + r),
    "squared_relu": each(lambda x: max(x, 0) ** 2),
    "quick_gelu": each(lambda x: x * sigmoid(1.702 * x)),
    "soft_cap": each(lambda x: 30 * math.tanh(x / 30)),
    "dynamic_tanh": each(lambda x, a, w, b: w * math.tanh(a * x) + b),
    "rms_norm": lambda x, w: rms(x) * w,
    "gemma_rms_norm": lambda x, w: functional.rms_norm(x, x.shape[-1:], 1 + w, 1e-6),
    "gated_rms_norm": lambda x, g, w: rms(x * g / (1 + torch.exp(-g))) * w,
    "smooth_cross_entropy": mean_of_rows(smooth_cross_entropy),
    "z_loss_cross_entropy": mean_of_rows(z_loss),
    "poly_cross_entropy": mean_of_rows(lambda x, t: -math.log(softmax(x)[t]) + 1 - softmax(x)[t]),
    "distillation_loss": lambda s, t: (
        4 * functional.kl_div((s / 2).log_softmax(-1), (t / 2).softmax(-1), reduction="batchmean")
    ),
    "jensen_shannon": mean_of_rows(jensen_shannon),
    "log_cosh_loss": mean_of(lambda x, t: math.log(math.cosh(x - t))),
    "masked_mse": masked_mse,
    "dice_loss": mean_of_rows(dice),
    "poisson_loss": lambda x, t: functional.poisson_nll_loss(x, t),
    "lstm_cell": lstm,
    "peephole_lstm_cell": peephole,
    "gru_cell": gru,
    "lltm_cell": lltm,
    "minimal_gru_cell": each(minimal_gru),
    "rotary": rotary,
    "masked_softmax": masked_softmax,
    "capped_softmax": lambda x: functional.softmax(each(lambda v: 50 * math.tanh(v / 50))(x), -1),
    "softmax_plus_one": lambda x: functional.softmax(functional.pad(x, (0, 1)), -1)[..., :-1],
    "biased_softmax": lambda x, b: torch.exp(x / 8 + b) / torch.exp(x / 8 + b).sum(-1, keepdim=True),
    "iou_loss": rows_of_boxes(lambda a, b: 1 - union_and_overlap(a, b)[1]),
    "generalized_iou_loss": rows_of_boxes(generalized_iou),
    "complete_iou_loss": rows_of_boxes(complete_iou),
    "normals_kl": lambda m, s, n, t: distributions.kl_divergence(normal(m, s), normal(n, t)),
    "normal_nll": lambda m, s, t: -normal(m, s).log_prob(t).mean(),
    "laplace_nll": lambda m, s, t: -distributions.Laplace(m, s.exp()).log_prob(t).mean(),
    "cauchy_nll": lambda m, s, t: -distributions.Cauchy(m, s.exp()).log_prob(t).mean(),
    "logistic_nll": mean_of(lambda m, s, t: s + 2 * math.log(2 * math.cosh((t - m) * math.exp(-s) / 2))),
    "lennard_jones": each(lambda r: 4 * (r**-12 - r**-6)),
    "morse": each(lambda r: math.expm1(-1.5 * (r - 1)) ** 2),
    "buckingham": each(lambda r: 1000 * math.exp(-4 * r) - r**-6),
    "screened_coulomb": each(lambda r, q: q * math.exp(-r / 2) / r),
    "matern_kernel": each(lambda r: (1 + 5**0.5 * r + 5 * r * r / 3) * math.exp(-(5**0.5) * r)),
}
"""Formulas of the arguments of the samples; numbers are the defaults."""

"""Losses, and the logarithms of densities."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from tests.accuracy.subject import Subject

_ALL = ("float32", "bfloat16", "float16")
_GENTLE = ("normal", "tiny", "delicate", "sorted")
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _focal(x: Tensor, u: Tensor) -> Tensor:
    plain = functional.binary_cross_entropy_with_logits(x, u, reduction="none")
    p = torch.sigmoid(x)
    return plain * (1 - (p * u + (1 - p) * (1 - u))).square()


def _dice(x: Tensor, u: Tensor) -> Tensor:
    p = torch.sigmoid(x)
    return 1 - (2 * (p * u).sum(-1) + 1) / (p.sum(-1) + u.sum(-1) + 1)


def _info_nce(x: Tensor, y: Tensor) -> Tensor:
    similarity = functional.normalize(x, dim=-1) * functional.normalize(y, dim=-1)
    return -torch.log_softmax(similarity / 0.1, -1).mean(-1)


LOSSES: Mapping[str, Subject] = {
    "cross_entropy": Subject(lambda x, t: functional.cross_entropy(x, t, reduction="none"), "xt", dtypes=_ALL),
    "cross_entropy, mean": Subject(functional.cross_entropy, "xt"),
    "cross_entropy, smoothing": Subject(lambda x, t: functional.cross_entropy(x, t, label_smoothing=0.1), "xt"),
    "cross_entropy by hand": Subject(lambda x, y: -(torch.softmax(y, -1) * torch.log_softmax(x, -1)).sum(-1), "xx"),
    "nll_loss": Subject(lambda x, t: functional.nll_loss(torch.log_softmax(x, 1), t), "xt"),
    "kl_div": Subject(
        lambda x, y: functional.kl_div(torch.log_softmax(x, -1), torch.softmax(y, -1), reduction="batchmean"), "xx"
    ),
    "kl_div, log target": Subject(
        lambda x, y: functional.kl_div(
            torch.log_softmax(x, -1), torch.log_softmax(y, -1), reduction="none", log_target=True
        ),
        "xx",
        ranges=_GENTLE,
    ),
    "bce": Subject(lambda u, v: functional.binary_cross_entropy(u, v, reduction="none"), "uu"),
    "bce with logits": Subject(
        lambda x, u: functional.binary_cross_entropy_with_logits(x, u, reduction="none"), "xu", dtypes=_ALL
    ),
    "bce with logits by hand": Subject(lambda x, u: torch.relu(x) - x * u + torch.log1p(torch.exp(-x.abs())), "xu"),
    "mse": Subject(lambda x, y: functional.mse_loss(torch.sigmoid(x), y, reduction="none"), "xx"),
    "huber": Subject(lambda x, y: functional.huber_loss(x, y, reduction="none", delta=0.7), "xx"),
    "smooth_l1": Subject(lambda x, y: functional.smooth_l1_loss(x, y, reduction="none", beta=0.5), "xx"),
    "log cosh": Subject(lambda x: x.abs() + functional.softplus(-2 * x.abs()) - math.log(2)),
    "focal": Subject(_focal, "xu"),
    "cosine embedding": Subject(lambda x, y: 1 - functional.cosine_similarity(x, y, -1), "xx"),
    "hinge": Subject(lambda x, s: torch.relu(1 - s * x).square(), "xs"),
    "soft margin": Subject(lambda x, s: functional.soft_margin_loss(x, s, reduction="none"), "xs"),
    "triplet": Subject(
        lambda x, y, z: torch.relu((x - y).square().sum(-1).add(1e-6).sqrt() - (x - z).norm(dim=-1) + 1.0), "xxx"
    ),
    "poisson nll": Subject(lambda x, p: functional.poisson_nll_loss(x, p, reduction="none"), "xp", ranges=_GENTLE),
    "poisson nll, full": Subject(
        lambda x, p: functional.poisson_nll_loss(x, p, full=True, log_input=True, reduction="none"),
        "xp",
        ranges=("normal", "sorted"),
    ),
    "gaussian nll": Subject(
        lambda x, y, p: 0.5 * (torch.log(p + 0.1) + (x - y).square() / (p + 0.1)), "xxp", ranges=_GENTLE
    ),
    "dice": Subject(_dice, "xu"),
    "info nce": Subject(_info_nce, "xx"),
    "margin ranking": Subject(lambda x, y, s: torch.relu(0.1 - s * (x - y)), "xxs"),
}
_POSITIVE = ("normal", "delicate", "sorted")
DENSITIES: Mapping[str, Subject] = {
    "normal": Subject(
        lambda x, y, p: -((x - y).square()) / (2 * p.square()) - p.log() - _HALF_LOG_TAU, "xxp", ranges=_POSITIVE
    ),
    "laplace": Subject(lambda x, y, p: -torch.log(2 * p) - (x - y).abs() / p, "xxp", ranges=_POSITIVE),
    "gamma": Subject(
        lambda p, a, b: a * b.log() + (a - 1) * p.log() - b * p - torch.lgamma(a), "ppp", ranges=_POSITIVE
    ),
    "beta": Subject(
        lambda u, a, b: (
            (a - 1) * u.log() + (b - 1) * torch.log1p(-u) + torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)
        ),
        "upp",
        ranges=_POSITIVE,
    ),
    "student t": Subject(
        lambda x, p: (
            -0.5 * (p + 1) * torch.log1p(x.square() / p)
            - 0.5 * p.log()
            + torch.lgamma(0.5 * (p + 1))
            - torch.lgamma(0.5 * p)
        ),
        "xp",
        ranges=_POSITIVE,
    ),
    "cauchy": Subject(lambda x, p: -p.log() - torch.log1p((x / p).square()) - math.log(math.pi), "xp"),
    "exponential": Subject(lambda p, q: q.log() - q * p, "pp", ranges=_POSITIVE),
    "von mises": Subject(lambda x, p: p * torch.cos(x) - torch.log(torch.special.i0e(p)) - p, "xp", ranges=_POSITIVE),
    "categorical": Subject(lambda x, t: torch.log_softmax(x, -1).gather(-1, t.unsqueeze(-1)).squeeze(-1), "xt"),
    "bernoulli": Subject(lambda x, u: u * functional.logsigmoid(x) + (1 - u) * functional.logsigmoid(-x), "xu"),
    "logistic": Subject(
        lambda x, y, p: -(x - y) / p - p.log() - 2 * functional.softplus(-(x - y) / p), "xxp", ranges=_POSITIVE
    ),
    "gumbel": Subject(lambda x, p: -(x / (p + 1) + torch.exp(-x / (p + 1))) - torch.log(p + 1), "xp", ranges=_POSITIVE),
    "log-normal": Subject(lambda p, x: -p.log() - 0.5 * (p.log() - x).square() - _HALF_LOG_TAU, "px", ranges=_POSITIVE),
    "half-normal": Subject(lambda x: torch.log1p(torch.erf(x / math.sqrt(2))), ranges=("tiny",)),
    "normal cdf": Subject(lambda x: 0.5 * torch.erfc(-x / math.sqrt(2))),
    "inverse softplus": Subject(lambda p: p + torch.log(-torch.expm1(-p)), "p", ranges=_POSITIVE),
    "weibull": Subject(lambda p, q: torch.log(q + 1) + q * p.log() - p.pow(q + 1), "pu", ranges=("normal", "sorted")),
    "power of a sum": Subject(lambda x, p: (x.square() + p).pow(-1.5), "xp", ranges=_POSITIVE),
    "grad chain": Subject(
        lambda x: torch.sin(torch.tanh(torch.exp(-torch.cos(torch.sigmoid(torch.log1p(x.square()))))))
    ),
    "tanh squared log-det": Subject(lambda x: 2 * (math.log(2) - x - functional.softplus(-2 * x))),
}

"""Functions over rows and columns: softmaxes, norms, reductions, attention and distances."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from tests.accuracy.draws import FLOATING_RANGES, ROW_RANGES, Shape
from tests.accuracy.subject import Subject

_ALL = ("float32", "bfloat16", "float16")
_GENTLE = ("normal", "tiny", "delicate", "sorted")
_DISTINCT = ("normal", "large", "sorted")


def _masked_softmax(x: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(x.masked_fill(~mask, -math.inf), -1)


def _masked_softmax_by_hand(x: Tensor, mask: Tensor) -> Tensor:
    shifted = torch.where(mask, x, -math.inf)
    power = torch.exp(shifted - shifted.amax(-1, keepdim=True))
    return power / power.sum(-1, keepdim=True)


def _masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    return (x * mask).sum(-1) / mask.sum(-1)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.softmax((q * k) / math.sqrt(q.shape[-1]), -1)
    return (scores * v).sum(-1)


def _additive_attention(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    return torch.softmax(torch.tanh(q + k) * w, -1)


def _layer_norm_by_hand(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * w + b


def _groups(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0], 4, -1)


def _has_groups(shape: Shape) -> bool:
    """Whether four groups of more than one number make a row."""
    return shape[1] > 4 and shape[1] % 4 == 0


def _batch_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return functional.batch_norm(x, None, None, w, b, training=True)


def _weight_standardised(x: Tensor) -> Tensor:
    variance, mean = torch.var_mean(x, -1, keepdim=True, correction=0)
    return (x - mean) / torch.sqrt(variance + 1e-5)


def _rotary(x: Tensor, angle: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    cosine, sine = angle.chunk(2, -1)[0].cos(), angle.chunk(2, -1)[0].sin()
    return torch.cat([left * cosine - right * sine, left * sine + right * cosine], -1)


SOFTMAXES: Mapping[str, Subject] = {
    "softmax": Subject(lambda x: torch.softmax(x, -1), ranges=ROW_RANGES, dtypes=_ALL),
    "softmax, dim 0": Subject(lambda x: torch.softmax(x, 0), ranges=ROW_RANGES),
    "softmax by hand": Subject(lambda x: torch.exp(x) / torch.exp(x).sum(-1, keepdim=True), ranges=_GENTLE),
    "log_softmax": Subject(lambda x: torch.log_softmax(x, -1), ranges=ROW_RANGES, dtypes=_ALL),
    "log_softmax, dim 0": Subject(lambda x: torch.log_softmax(x, 0), ranges=ROW_RANGES),
    "softmax, temperature": Subject(lambda x: torch.softmax(x / 0.07, -1), ranges=FLOATING_RANGES),
    "softmin": Subject(lambda x: functional.softmin(x, -1)),
    "masked softmax": Subject(_masked_softmax, "xm"),
    "masked softmax by hand": Subject(_masked_softmax_by_hand, "xm"),
    "logsumexp": Subject(lambda x: torch.logsumexp(x, -1), ranges=ROW_RANGES, dtypes=_ALL),
    "logsumexp, dim 0": Subject(lambda x: torch.logsumexp(x, 0), ranges=ROW_RANGES),
    "attention of a row": Subject(_attention, "xxx"),
    "additive attention": Subject(_additive_attention, "xxw"),
    "entropy": Subject(lambda x: -(torch.softmax(x, -1) * torch.log_softmax(x, -1)).sum(-1)),
    "gated by softmax": Subject(lambda x, y: torch.softmax(x, -1) * torch.tanh(y), "xx"),
}
NORMS: Mapping[str, Subject] = {
    "layer_norm": Subject(
        lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b), "xww", ranges=ROW_RANGES, dtypes=_ALL
    ),
    "layer norm by hand": Subject(_layer_norm_by_hand, "xww", ranges=ROW_RANGES),
    "rms_norm": Subject(lambda x, w: functional.rms_norm(x, x.shape[-1:], w, 1e-6), "xw", ranges=ROW_RANGES),
    "rms norm by hand": Subject(
        lambda x, w: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w, "xw", ranges=ROW_RANGES
    ),
    "group_norm": Subject(
        lambda x: functional.group_norm(_groups(x), 4).flatten(1), ranges=ROW_RANGES, fits=_has_groups
    ),
    "instance_norm": Subject(
        lambda x: functional.instance_norm(_groups(x)).flatten(1), ranges=ROW_RANGES, fits=_has_groups
    ),
    "batch_norm": Subject(_batch_norm, "xww", ranges=ROW_RANGES, fits=lambda shape: shape[0] > 1),
    "normalize": Subject(lambda x: functional.normalize(x, dim=-1), ranges=ROW_RANGES),
    "normalize by hand": Subject(lambda x: x / x.norm(dim=-1, keepdim=True).clamp_min(1e-12), ranges=ROW_RANGES),
    "weight standardisation": Subject(_weight_standardised, ranges=ROW_RANGES),
    "layer norm, silu": Subject(
        lambda x, w, b: functional.silu(functional.layer_norm(x, x.shape[-1:], w, b)), "xww", ranges=ROW_RANGES
    ),
    "residual layer norm": Subject(
        lambda x, y, w, b: functional.layer_norm(x + y, x.shape[-1:], w, b), "xxww", ranges=ROW_RANGES
    ),
    "rms norm, swiglu": Subject(
        lambda x, y, w: functional.silu(functional.rms_norm(x, x.shape[-1:], w, 1e-6)) * y, "xxw", ranges=ROW_RANGES
    ),
}
REDUCTIONS: Mapping[str, Subject] = {
    "sum": Subject(lambda x: x.sum(-1), ranges=ROW_RANGES, dtypes=_ALL),
    "sum, dim 0": Subject(lambda x: x.sum(0), ranges=ROW_RANGES, dtypes=_ALL),
    "sum of all": Subject(lambda x: torch.tanh(x).sum()),
    "mean": Subject(lambda x: x.mean(-1), ranges=ROW_RANGES, dtypes=_ALL),
    "mean, dim 0": Subject(lambda x: x.mean(0), ranges=ROW_RANGES),
    "var": Subject(lambda x: x.var(-1, correction=0), ranges=ROW_RANGES, dtypes=_ALL),
    "var, dim 0": Subject(lambda x: x.var(0, correction=0), ranges=ROW_RANGES),
    "std": Subject(lambda x: torch.sqrt(x.var(-1, correction=0) + 1e-3), ranges=ROW_RANGES),
    "variance of squares": Subject(lambda x: x.square().mean(-1) - x.mean(-1).square(), ranges=_GENTLE),
    "norm of order 3": Subject(lambda x: torch.linalg.vector_norm(x, 3, dim=-1)),
    "product": Subject(lambda x: (1 + 0.01 * torch.sin(x)).prod(-1), ranges=_GENTLE),
    "cumsum": Subject(lambda x: torch.tanh(x).cumsum(-1)),
    "masked mean": Subject(_masked_mean, "xm"),
    "amax": Subject(lambda x: x.amax(-1), ranges=_DISTINCT),
    "sum of exp": Subject(lambda x: torch.exp(-x.abs()).sum(-1)),
}
DISTANCES: Mapping[str, Subject] = {
    "squared distance": Subject(lambda x, y: (x - y).square().sum(-1), "xx", ranges=ROW_RANGES),
    "distance": Subject(lambda x, y: ((x - y).square().sum(-1) + 1e-6).sqrt(), "xx", ranges=ROW_RANGES),
    "pairwise_distance": Subject(functional.pairwise_distance, "xx"),
    "cosine_similarity": Subject(lambda x, y: functional.cosine_similarity(x, y, -1), "xx"),
    "cosine by hand": Subject(lambda x, y: (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1)), "xx"),
    "radial basis": Subject(lambda x, y: torch.exp(-(x - y).square().mean(-1)), "xx"),
    "rotary": Subject(_rotary, "xx", ranges=_GENTLE),
    "complex product": Subject(
        lambda x, y, z: torch.view_as_real(torch.complex(x, y) * torch.complex(z, x)).square().sum(-1),
        "xxx",
        dtypes=("float32",),
    ),
    "complex exp": Subject(
        lambda x, y: torch.view_as_real(torch.exp(torch.complex(torch.tanh(x), y))).sum(-1), "xx", dtypes=("float32",)
    ),
    "complex functions": Subject(
        lambda x, y: torch.view_as_real(
            torch.sin(z := torch.complex(x, torch.tanh(y))) + torch.cos(z * 2) * torch.sqrt(torch.tanh(z * 0.5))
        ).sum(-1),
        "xx",
        dtypes=("float32",),
    ),
    "complex magnitude": Subject(lambda x, y: torch.complex(x, y).abs(), "xx", dtypes=("float32",)),
    "complex quotient": Subject(
        lambda x, y, z: torch.view_as_real(torch.complex(x, y) / torch.complex(y, z)).sum(-1),
        "xxp",
        dtypes=("float32",),
        ranges=("normal", "large"),
    ),
    "haversine": Subject(
        lambda x, y: torch.asin(torch.sqrt(torch.sin(x / 2).square() * 0.5 + torch.sin(y / 2).square() * 0.25 + 1e-3)),
        "xx",
        ranges=_GENTLE,
    ),
}

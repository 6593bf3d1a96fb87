"""Densities and divergences of distributions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import drawn

_ROWS = {"N": (64, 512, 2048), "C": (256, 1024, 4096)}


@operator(name="opwright_library::normal_nll", samples=drawn("N C", "N C", "N C", **_ROWS))
def normal_nll(mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
    """Score predicted normal distributions.

        L = mean of ½ (log 2π + s + (t - m)² exp(-s))

    Args:
        mean: m, any shape, floating.
        log_variance: s, as the mean.
        target: t, as the mean.

    Returns:
        (), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Nix and Weigend, Estimating the Mean and Variance of the Target Probability Distribution, 1994.
    """
    squares = (target - mean).square() * torch.exp(-log_variance)
    return 0.5 * (math.log(2.0 * math.pi) + log_variance + squares).mean()

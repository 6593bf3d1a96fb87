"""Densities and divergences of distributions."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import drawn

_ROWS = {"N": (64, 512, 2048), "C": (256, 1024, 4096)}


@operator(name="opwright_library::normals_kl", samples=drawn("N C", "N C", "N C", "N C", **_ROWS))
def normals_kl(mean: Tensor, log_variance: Tensor, other_mean: Tensor, other_log_variance: Tensor) -> Tensor:
    """Compare normal distributions with others, as diffusion models do at each step.

        KL = ½ (t - s - 1 + exp(s - t) + (m - n)² exp(-t))

    Args:
        mean: m, any shape, floating.
        log_variance: s, as the mean.
        other_mean: n, as the mean.
        other_log_variance: t, as the mean.

    Returns:
        Any shape, of the dtype of the arguments: one number for each element.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Ho et al., Denoising Diffusion Probabilistic Models, 2020, arXiv:2006.11239, equation 5, for one dimension.
    """
    ratio = log_variance - other_log_variance
    return 0.5 * (ratio.exp() - ratio - 1.0 + (mean - other_mean).square() * torch.exp(-other_log_variance))


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


@operator(name="opwright_library::laplace_nll", samples=drawn("N C", "N C", "N C", **_ROWS))
def laplace_nll(center: Tensor, log_scale: Tensor, target: Tensor) -> Tensor:
    """Score predicted Laplace distributions.

        L = mean of log 2 + s + |t - m| exp(-s)

    Args:
        center: m, any shape, floating.
        log_scale: s, as the center.
        target: t, as the center.

    Returns:
        (), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        The Laplace distribution's negative logarithm.
    """
    return (math.log(2.0) + log_scale + (target - center).abs() * torch.exp(-log_scale)).mean()


@operator(name="opwright_library::cauchy_nll", samples=drawn("N C", "N C", "N C", **_ROWS))
def cauchy_nll(center: Tensor, log_scale: Tensor, target: Tensor) -> Tensor:
    """Score predicted Cauchy distributions, which forgive outliers.

        L = mean of log π + s + log(1 + z²), z = (t - m) exp(-s)

    Args:
        center: m, any shape, floating.
        log_scale: s, as the center.
        target: t, as the center.

    Returns:
        (), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        The Cauchy distribution's negative logarithm.
    """
    z = (target - center) * torch.exp(-log_scale)
    return (math.log(math.pi) + log_scale + torch.log1p(z.square())).mean()


@operator(name="opwright_library::logistic_nll", samples=drawn("N C", "N C", "N C", **_ROWS))
def logistic_nll(center: Tensor, log_scale: Tensor, target: Tensor) -> Tensor:
    """Score predicted logistic distributions.

        L = mean of z + s + 2 log(1 + exp(-z)), z = (t - m) exp(-s)

    Args:
        center: m, any shape, floating.
        log_scale: s, as the center.
        target: t, as the center.

    Returns:
        (), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Salimans et al., PixelCNN++, 2017, arXiv:1701.05517, section 2.1, as a density.
    """
    z = (target - center) * torch.exp(-log_scale)
    return (z + log_scale + 2.0 * F.softplus(-z)).mean()

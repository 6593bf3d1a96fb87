"""Losses of classes and of numbers, with what is done around them: smoothing, masks, temperatures."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import classes, drawn, fractions, mask, positive

_ROWS = {"N": (64, 512, 2048), "C": (256, 1024, 4096)}


@operator(name="opwright_library::smooth_cross_entropy", samples=drawn("N C", classes("N"), **_ROWS))
def smooth_cross_entropy(logits: Tensor, target: Tensor, smoothing: float = 0.1) -> Tensor:
    """Compare logits with classes, a part of whose probability is spread over all classes.

        L = mean over rows of (1 - a) · (-log p[t]) + a · mean over classes of (-log p), p = softmax(x)

    Args:
        logits: x, (N, C), floating.
        target: t, (N), int64, from 0 to C - 1, or -100 for rows to leave out.
        smoothing: a, from 0 to 1.

    Returns:
        (), of the dtype of the logits.

    Raises:
        IndexError: A class is out of range.
        ValueError: The number of rows differs.

    Source:
        Szegedy et al., Rethinking the Inception Architecture, 2015, arXiv:1512.00567, section 7.
    """
    return F.cross_entropy(logits, target, label_smoothing=smoothing)


@operator(name="opwright_library::z_loss_cross_entropy", samples=drawn("N C", classes("N"), **_ROWS))
def z_loss_cross_entropy(logits: Tensor, target: Tensor, weight: float = 1e-4) -> Tensor:
    """Compare logits with classes, and keep their log-sum-exp near zero.

        L = mean over rows of z - x[t] + w · z², z = log Σ exp x

    Args:
        logits: x, (N, C), floating.
        target: t, (N), int64, from 0 to C - 1.
        weight: w.

    Returns:
        (), of the dtype of the logits.

    Raises:
        RuntimeError: A class is out of range, or the number of rows differs.

    Source:
        Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 5.
    """
    normalizer = torch.logsumexp(logits, -1)
    chosen = logits.gather(-1, target[:, None]).squeeze(-1)
    return (normalizer - chosen + weight * normalizer.square()).mean()


@operator(name="opwright_library::poly_cross_entropy", samples=drawn("N C", classes("N"), **_ROWS))
def poly_cross_entropy(logits: Tensor, target: Tensor, weight: float = 1.0) -> Tensor:
    """Compare logits with classes, with a larger first term in the series of the loss (Poly-1).

        L = mean over rows of -log p[t] + w · (1 - p[t]), p = softmax(x)

    Args:
        logits: x, (N, C), floating.
        target: t, (N), int64, from 0 to C - 1.
        weight: w, above -1.

    Returns:
        (), of the dtype of the logits.

    Raises:
        RuntimeError: A class is out of range, or the number of rows differs.

    Source:
        Leng et al., PolyLoss, 2022, arXiv:2204.12511, equation 5.
    """
    logarithm = F.log_softmax(logits, -1).gather(-1, target[:, None])
    return (weight * (1.0 - logarithm.exp()) - logarithm).mean()


@operator(name="opwright_library::distillation_loss", samples=drawn("N C", "N C", **_ROWS))
def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 2.0) -> Tensor:
    """Compare two models' logits, softened.

        L = T² · mean over rows of Σ q · (log q - log p), q = softmax(teacher / T), p = softmax(student / T)

    Args:
        student: (N, C), floating.
        teacher: As the student.
        temperature: T, above zero.

    Returns:
        (), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Hinton et al., Distilling the Knowledge in a Neural Network, 2015, arXiv:1503.02531, section 2.
    """
    p = F.log_softmax(student / temperature, -1)
    q = F.log_softmax(teacher / temperature, -1)
    return (q.exp() * (q - p)).sum(-1).mean() * temperature**2


@operator(name="opwright_library::jensen_shannon", samples=drawn("N C", "N C", **_ROWS))
def jensen_shannon(first: Tensor, second: Tensor) -> Tensor:
    """Compare two models' logits, both alike.

        L = mean over rows of ½ Σ p · (log p - log m) + ½ Σ q · (log q - log m), m = ½ (p + q)

    Args:
        first: Logits of p, (N, C), floating.
        second: Logits of q, as the first.

    Returns:
        (), of the dtype of the arguments, from 0 to log 2.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Lin, Divergence Measures Based on the Shannon Entropy, 1991, equation 4.1 with equal weights.
    """
    p, q = F.log_softmax(first, -1), F.log_softmax(second, -1)
    middle = torch.logaddexp(p, q) - 0.6931471805599453
    return 0.5 * (p.exp() * (p - middle) + q.exp() * (q - middle)).sum(-1).mean()


@operator(name="opwright_library::log_cosh_loss", samples=drawn("N C", "N C", **_ROWS))
def log_cosh_loss(x: Tensor, target: Tensor) -> Tensor:
    """Compare numbers: squares where they are near, distances where they are far, smooth between.

        L = mean of log cosh(x - t), as d + log(1 + exp(-2 d)) - log 2 with d = x - t

    Args:
        x: Any shape, floating.
        target: t, as x.

    Returns:
        (), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Chen et al., Log Hyperbolic Cosine Loss Improves Variational Auto-Encoder, 2018, equation 7.
    """
    difference = x - target
    return (difference + F.softplus(-2.0 * difference) - 0.6931471805599453).mean()


@operator(name="opwright_library::masked_mse", samples=drawn("N C", "N C", mask("N C"), **_ROWS))
def masked_mse(x: Tensor, target: Tensor, hidden: Tensor) -> Tensor:
    """Compare numbers where they are not hidden.

        L = Σ (x - t)² / n, over the n elements that are not hidden; 0 if there is none

    Args:
        x: Any shape, floating.
        target: t, as x.
        hidden: bool, as x; True where elements are left out.

    Returns:
        (), of the dtype of x.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        He et al., Masked Autoencoders Are Scalable Vision Learners, 2021, arXiv:2111.06377, section 3.
    """
    squares = (x - target).square().masked_fill(hidden, 0.0)
    return squares.sum() / (~hidden).sum().clamp(min=1)


@operator(name="opwright_library::dice_loss", samples=drawn("N C", fractions("N C"), **_ROWS))
def dice_loss(logits: Tensor, target: Tensor, eps: float = 1.0) -> Tensor:
    """Compare segmentations by how much they overlap.

        L = mean over rows of 1 - (2 Σ p t + ε) / (Σ p + Σ t + ε), p = σ(x)

    Args:
        logits: x, (N, C), one row for each image, floating.
        target: t, as x, from 0 to 1.
        eps: ε, so that empty segmentations count as equal.

    Returns:
        (), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Milletari et al., V-Net, 2016, arXiv:1606.04797, section 3.
    """
    p = torch.sigmoid(logits)
    overlap = 2.0 * (p * target).sum(-1) + eps
    return (1.0 - overlap / (p.sum(-1) + target.sum(-1) + eps)).mean()


@operator(name="opwright_library::poisson_loss", samples=drawn("N C", positive("N C"), **_ROWS))
def poisson_loss(log_rate: Tensor, count: Tensor) -> Tensor:
    """Compare predicted rates with counts.

        L = mean of exp(x) - t · x

    Args:
        log_rate: x, any shape, floating.
        count: t, as x, at least 0.

    Returns:
        (), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        The Poisson distribution's negative logarithm, without log t!, as torch.nn.PoissonNLLLoss.
    """
    return (log_rate.exp() - count * log_rate).mean()

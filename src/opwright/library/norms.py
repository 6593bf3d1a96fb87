"""Norms of rows, with what stands around them: residuals, gates, modulation."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import drawn

_ROWS = {"N": (64, 512, 2048), "C": (256, 1024, 4096)}


@operator(name="opwright_library::rms_norm", samples=drawn("N C", "C", **_ROWS))
def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """Divide each row by the root of its mean square.

        y = w · x / √(mean(x²) + ε)

    Args:
        x: (..., C), floating.
        weight: w, (C).
        eps: ε.

    Returns:
        (..., C), of the dtype of the arguments.

    Raises:
        RuntimeError: The weight has another size than the rows.

    Source:
        Zhang and Sennrich, Root Mean Square Layer Normalization, 2019, arXiv:1910.07467, equation 4.
    """
    return F.rms_norm(x, x.shape[-1:], weight, eps)


@operator(name="opwright_library::gemma_rms_norm", samples=drawn("N C", "C", **_ROWS))
def gemma_rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """Norm rows with a weight that is stored as its distance from one, as Gemma does.

        y = (1 + w) · x / √(mean(x²) + ε)

    Args:
        x: (..., C), floating.
        weight: w, (C).
        eps: ε.

    Returns:
        (..., C), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Gemma Team, Gemma, 2024, arXiv:2403.08295; the norm is arXiv:1910.07467, equation 4.
    """
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1.0 + weight)


@operator(name="opwright_library::gated_rms_norm", samples=drawn("N C", "N C", "C", **_ROWS))
def gated_rms_norm(x: Tensor, gate: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """Gate with swish, then norm rows, as Mamba-2 does before its last product.

        s = x · g · σ(g), y = w · s / √(mean(s²) + ε)

    Args:
        x: (..., C), floating.
        gate: g, as x.
        weight: w, (C).
        eps: ε.

    Returns:
        (..., C), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast, or the weight has another size than the rows.

    Source:
        Dao and Gu, Transformers are SSMs, 2024, arXiv:2405.21060, section 7.
    """
    gated = x * F.silu(gate)
    return F.rms_norm(gated, gated.shape[-1:], weight, eps)

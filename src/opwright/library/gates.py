"""Gated units and biased activations: what stands between two linear layers."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import drawn

_ROWS = {"N": (64, 512, 2048), "C": (256, 1024, 4096)}


@operator(name="opwright_library::swiglu", samples=drawn("N C", "N C", **_ROWS))
def swiglu(x: Tensor, gate: Tensor) -> Tensor:
    """Gate with swish, as LLaMA's feed-forward layers do.

        y = x · g · σ(g)

    Args:
        x: (..., C), floating.
        gate: g, as x.

    Returns:
        (..., C), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Shazeer, GLU Variants Improve Transformer, 2020, arXiv:2002.05202, equation 6.
    """
    return x * F.silu(gate)


@operator(name="opwright_library::bias_gelu", samples=drawn("N C", "C", **_ROWS))
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """Add a bias, then GELU: what follows the product of a linear layer.

        y = z · Φ(z), z = x + b

    Args:
        x: (..., C), floating.
        bias: b, (C).

    Returns:
        (..., C), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Hendrycks and Gimpel, Gaussian Error Linear Units, 2016, arXiv:1606.08415; fused in Megatron-LM.
    """
    return F.gelu(x + bias)

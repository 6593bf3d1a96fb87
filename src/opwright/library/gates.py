"""Gated units and biased activations: what stands between two linear layers."""

from __future__ import annotations

import torch
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


@operator(name="opwright_library::geglu", samples=drawn("N C", "N C", **_ROWS))
def geglu(x: Tensor, gate: Tensor) -> Tensor:
    """Gate with GELU.

        y = x · g · Φ(g), Φ the distribution function of the normal distribution

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
    return x * F.gelu(gate)


@operator(name="opwright_library::geglu_tanh", samples=drawn("N C", "N C", **_ROWS))
def geglu_tanh(x: Tensor, gate: Tensor) -> Tensor:
    """Gate with the approximation of GELU by tanh, as Gemma does.

        y = x · g/2 · (1 + tanh(√(2/π) · (g + 0.044715 g³)))

    Args:
        x: (..., C), floating.
        gate: g, as x.

    Returns:
        (..., C), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Hendrycks and Gimpel, Gaussian Error Linear Units, 2016, arXiv:1606.08415, section 2.
    """
    return x * F.gelu(gate, approximate="tanh")


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


@operator(name="opwright_library::bias_gelu_residual", samples=drawn("N C", "C", "N C", **_ROWS))
def bias_gelu_residual(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    """Add a bias, take GELU, and add what went past the layer.

        y = z · Φ(z) + r, z = x + b

    Args:
        x: (..., C), floating.
        bias: b, (C).
        residual: r, (..., C).

    Returns:
        (..., C), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Hendrycks and Gimpel, Gaussian Error Linear Units, 2016, arXiv:1606.08415.
    """
    return F.gelu(x + bias) + residual


@operator(name="opwright_library::squared_relu", samples=drawn("N C", **_ROWS))
def squared_relu(x: Tensor) -> Tensor:
    """Square what is positive.

        y = max(x, 0)²

    Args:
        x: Any shape, floating.

    Returns:
        As x.

    Raises:
        TypeError: x is no tensor.

    Source:
        So et al., Primer, 2021, arXiv:2109.08668, section 3.
    """
    return F.relu(x).square()


@operator(name="opwright_library::quick_gelu", samples=drawn("N C", **_ROWS))
def quick_gelu(x: Tensor, slope: float = 1.702) -> Tensor:
    """Approximate GELU by a sigmoid, as CLIP does; with a slope of 1 it is swish.

        y = x · σ(a x)

    Args:
        x: Any shape, floating.
        slope: a.

    Returns:
        As x.

    Raises:
        TypeError: x is no tensor.

    Source:
        Hendrycks and Gimpel, Gaussian Error Linear Units, 2016, arXiv:1606.08415, section 2.
    """
    return x * torch.sigmoid(slope * x)


@operator(name="opwright_library::soft_cap", samples=drawn("N C", **_ROWS))
def soft_cap(x: Tensor, limit: float = 30.0) -> Tensor:
    """Keep logits within a limit, smoothly.

        y = c · tanh(x / c)

    Args:
        x: Any shape, floating.
        limit: c, above zero.

    Returns:
        As x.

    Raises:
        TypeError: x is no tensor.

    Source:
        Gemma Team, Gemma 2, 2024, arXiv:2408.00118, section 2.
    """
    return limit * torch.tanh(x / limit)


@operator(name="opwright_library::dynamic_tanh", samples=drawn("N C", "1", "C", "C", **_ROWS))
def dynamic_tanh(x: Tensor, scale: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Squash with a learned slope, in place of a norm (DyT).

        y = w · tanh(a x) + b

    Args:
        x: (..., C), floating.
        scale: a, (1).
        weight: w, (C).
        bias: b, (C).

    Returns:
        (..., C), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Zhu et al., Transformers without Normalization, 2025, arXiv:2503.10622, section 4.
    """
    return weight * torch.tanh(scale * x) + bias

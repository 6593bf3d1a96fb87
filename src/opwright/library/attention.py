"""What stands around the products of attention: rotary positions, and softmax of masked or capped scores."""

from __future__ import annotations

import torch
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import drawn, mask, table

_HEADS = {"B": (1, 4, 8), "H": (4, 8, 16), "T": (32, 256, 512), "D": (16, 32, 64)}
_SCORES = {"N": (64, 512, 2048), "C": (256, 1024, 4096)}


@operator(name="opwright_library::rotary", samples=drawn("B H T 2*D", table("T 2*D"), table("T 2*D"), **_HEADS))
def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn pairs of queries or keys by their positions; a pair is one element of each half (GPT-NeoX, LLaMA).

        y = x · cos + (-x₂, x₁) · sin, x = (x₁, x₂)

    Args:
        x: (..., T, D), D even, floating.
        cos: Cosines of the angles, (T, D), both halves alike.
        sin: Their sines, as cos.

    Returns:
        (..., T, D), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Su et al., RoFormer, 2021, arXiv:2104.09864, equation 34, with the pairs of GPT-NeoX.
    """
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


@operator(name="opwright_library::masked_softmax", samples=drawn("N C", mask("N C"), **_SCORES))
def masked_softmax(scores: Tensor, hidden: Tensor, scale: float = 0.125) -> Tensor:
    """Turn scores into weights, of what is not hidden.

        y = softmax(a x), with x = -∞ where hidden

    Args:
        scores: x, (..., C), floating.
        hidden: bool, broadcast to the scores; True where weights are to be zero. A row with all hidden gives NaN.
        scale: a.

    Returns:
        As the scores.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Vaswani et al., Attention Is All You Need, 2017, arXiv:1706.03762, section 3.2.3.
    """
    return torch.softmax((scores * scale).masked_fill(hidden, float("-inf")), -1)


@operator(name="opwright_library::capped_softmax", samples=drawn("N C", **_SCORES))
def capped_softmax(scores: Tensor, limit: float = 50.0) -> Tensor:
    """Turn scores into weights, with scores kept within a limit.

        y = softmax(c · tanh(x / c))

    Args:
        scores: x, (..., C), floating.
        limit: c, above zero.

    Returns:
        As the scores.

    Raises:
        TypeError: The scores are no tensor.

    Source:
        Gemma Team, Gemma 2, 2024, arXiv:2408.00118, section 2.
    """
    return torch.softmax(limit * torch.tanh(scores / limit), -1)


@operator(name="opwright_library::softmax_plus_one", samples=drawn("N C", **_SCORES))
def softmax_plus_one(scores: Tensor) -> Tensor:
    """Turn scores into weights that may be zero all together, as if there were one more score of zero.

        y = exp(x - m) / (exp(-m) + Σ exp(x - m)), m = max(x, 0)

    Args:
        scores: x, (..., C), floating.

    Returns:
        As the scores; each row sums to less than one.

    Raises:
        IndexError: A row is empty.

    Source:
        Miller, Attention Is Off By One, 2023.
    """
    largest = scores.amax(-1, keepdim=True).clamp(min=0.0).detach()
    raised = torch.exp(scores - largest)
    return raised / (torch.exp(-largest) + raised.sum(-1, keepdim=True))


@operator(name="opwright_library::biased_softmax", samples=drawn("N C", "N C", **_SCORES))
def biased_softmax(scores: Tensor, bias: Tensor, scale: float = 0.125) -> Tensor:
    """Turn scores into weights, with a bias for positions, such as ALiBi's or T5's.

        y = softmax(a x + b)

    Args:
        scores: x, (..., C), floating.
        bias: b, broadcast to the scores.
        scale: a.

    Returns:
        (..., C), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Press et al., Train Short, Test Long, 2021, arXiv:2108.12409, section 3.
    """
    return torch.softmax(scores * scale + bias, -1)

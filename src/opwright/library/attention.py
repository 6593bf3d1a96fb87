"""What stands around the products of attention: rotary positions, and softmax of masked or capped scores."""

from __future__ import annotations

import torch
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import drawn, mask

_HEADS = {"B": (1, 4, 8), "H": (4, 8, 16), "T": (32, 256, 512), "D": (16, 32, 64)}
_SCORES = {"N": (64, 512, 2048), "C": (256, 1024, 4096)}


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

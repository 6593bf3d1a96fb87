"""Tolerance: the one place that defines how large a rounding error may be."""

from __future__ import annotations

import torch

_ROUNDINGS = 4.0
_ROUNDINGS_OF_HALF = 1.0  # only the result is rounded


def tolerance(dtype: torch.dtype, reduction_length: int) -> float:
    """Return the error that rounding alone can cause, relative to the largest value of the result.

    It allows a few roundings of the result, and a sum of `n` terms with independent rounding errors, whose error grows
    with the square root of `n` (Higham, Accuracy and Stability of Numerical Algorithms, section 2.8). Half types are
    computed and summed in float32 and rounded once.

    Args:
        dtype: The dtype of the result.
        reduction_length: How many terms are added for one element of the result.
    """
    roundings = _ROUNDINGS if dtype.itemsize >= 4 else _ROUNDINGS_OF_HALF
    accumulated = torch.finfo(dtype).eps if dtype.itemsize >= 4 else torch.finfo(torch.float32).eps
    return float(roundings * torch.finfo(dtype).eps + accumulated * max(reduction_length, 1) ** 0.5)


def reduction_length(inputs: list[torch.Tensor], output: torch.Tensor) -> int:
    """Estimate how many terms are added for one element of an output.

    The longest axis of an input covers matrix products; the number of input elements per output element covers sums
    over several axes.
    """
    longest_axis = max((size for tensor in inputs for size in tensor.shape), default=1)
    gathered = sum(tensor.numel() for tensor in inputs) // max(output.numel(), 1)
    return max(longest_axis, gathered, 1)

"""Tolerance: the one place that says how large a rounding error may be."""

from __future__ import annotations

import torch

_ROUNDINGS = 4.0
_ROUNDINGS_OF_HALF = 1.0  # the result alone is rounded


def tolerance(dtype: torch.dtype, reduction_length: int) -> float:
    """Return the error that rounding alone explains, relative to the largest value of the result.

    A few roundings of the result, and a sum of `n` terms whose roundings are independent, which grows with the square
    root of `n` (Higham, Accuracy and Stability of Numerical Algorithms, section 2.8). Half types are computed and
    summed in float32 and rounded once.

    Args:
        dtype: The dtype of the result.
        reduction_length: How many terms are added for one element of the result.
    """
    roundings = _ROUNDINGS if dtype.itemsize >= 4 else _ROUNDINGS_OF_HALF
    accumulated = torch.finfo(dtype).eps if dtype.itemsize >= 4 else torch.finfo(torch.float32).eps
    return float(roundings * torch.finfo(dtype).eps + accumulated * max(reduction_length, 1) ** 0.5)


def reduction_length(inputs: list[torch.Tensor], output: torch.Tensor) -> int:
    """Estimate how many terms make up one element of an output.

    The longest axis of an input covers products of matrices; elements of the inputs per element of the output cover
    sums over several axes.
    """
    longest_axis = max((size for tensor in inputs for size in tensor.shape), default=1)
    gathered = sum(tensor.numel() for tensor in inputs) // max(output.numel(), 1)
    return max(longest_axis, gathered, 1)

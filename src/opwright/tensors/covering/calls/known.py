"""Known: calls of operations that read outside of their tensors if they are given something else than autograd gives.

The search for calls does not guess for these. Shapes are those of the sample, with windows of one element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from opwright.tensors.covering.calls.values import OTHER, SAMPLE

Arguments = tuple[Any, ...]
_BOTH = (True, True, False)


def known_arguments(function: Any, dense: torch.Tensor) -> Arguments | None:
    """The arguments of one of these operations for a sample; None if it has too few or too many dimensions.

    Args:
        function: An operation of which `is_known`.
        dense: The dense tensor of the sample.
    """
    dims, call = _CALLS[function.name()]
    return call(dense) if dense.dim() in dims else None


def is_known(function: Any) -> bool:
    """Whether calls are not searched, but known."""
    return isinstance(function, torch._ops.OpOverload) and function.name() in _CALLS


def _ones(x: torch.Tensor, *sizes: int) -> torch.Tensor:
    return torch.ones(sizes, dtype=x.dtype)


def _zeros(x: torch.Tensor, *sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, dtype=x.dtype)


def _convolution(x: torch.Tensor) -> Arguments:
    spatial = x.dim() - 2
    one, none = (1,) * spatial, (0,) * spatial
    weight = _ones(x, x.shape[1], x.shape[1], *one)
    return (SAMPLE, OTHER, weight, None, one, none, one, False, none, 1, _BOTH)


def _max_pool(x: torch.Tensor) -> Arguments:
    indices = torch.arange(x.shape[-1] * x.shape[-2]).reshape(x.shape[-2:]).expand(x.shape).contiguous()
    return (SAMPLE, OTHER, (1, 1), (1, 1), (0, 0), (1, 1), False, indices)


def _layer_norm(x: torch.Tensor) -> Arguments:
    rows = (*x.shape[:-1], 1)
    return (SAMPLE, OTHER, (x.shape[-1],), _zeros(x, *rows), _ones(x, *rows), _ones(x, x.shape[-1]), None, _BOTH)


def _group_norm(x: torch.Tensor) -> Arguments:
    count, channels = x.shape[:2]
    mean, rstd = _zeros(x, count, 1), _ones(x, count, 1)
    return (SAMPLE, OTHER, mean, rstd, _ones(x, channels), count, channels, x[0, 0].numel(), 1, _BOTH)


def _batch_norm(x: torch.Tensor) -> Arguments:
    channels = x.shape[1]
    return (SAMPLE, _ones(x, channels), None, _zeros(x, channels), _ones(x, channels))


_CALLS: dict[str, tuple[tuple[int, ...], Callable[[torch.Tensor], Arguments]]] = {
    # operation: (numbers of dimensions, arguments)
    "aten::_adaptive_avg_pool2d_backward": ((3, 4), lambda _: (SAMPLE, OTHER)),
    "aten::_native_batch_norm_legit": ((2, 3, 4, 5), lambda x: (*_batch_norm(x), True, 0.1, 1e-5)),
    "aten::_native_batch_norm_legit.no_stats": ((2, 3, 4, 5), lambda x: (*_batch_norm(x)[:3], True, 0.1, 1e-5)),
    "aten::_native_batch_norm_legit_no_training": ((2, 3, 4, 5), lambda x: (*_batch_norm(x), 0.1, 1e-5)),
    "aten::avg_pool2d_backward": ((3, 4), lambda _: (SAMPLE, OTHER, (1, 1), (1, 1), (0, 0), False, True, None)),
    "aten::convolution_backward": ((3, 4, 5), _convolution),
    "aten::embedding_dense_backward": (
        (1, 2, 3, 4),
        lambda x: (SAMPLE, torch.zeros(x.shape[:-1], dtype=torch.int64), 3, -1, False),
    ),
    "aten::max_pool2d_with_indices_backward": ((3, 4), _max_pool),
    "aten::native_group_norm_backward": ((3, 4, 5), _group_norm),
    "aten::native_layer_norm_backward": ((1, 2, 3, 4), _layer_norm),
}

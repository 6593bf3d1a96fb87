"""Compare: how a result differs from the dense one, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from opwright.tensors.covering.subject import Subject

_LOOSE = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-4, torch.complex64: 1e-4}
_EXACT = 1e-8


def difference(subject: Subject, found: Any, right: Any, *, values: bool = True) -> str:
    """What distinguishes a result from the dense one: types, shapes, dtypes or values; empty if nothing does.

    Args:
        subject: The type; its objects are compared by what they stand for.
        found: The result with an object of the type.
        right: The result with dense tensors.
        values: Whether values are defined.
    """
    try:
        leaves, others = tree_leaves(subject.dense(found)), tree_leaves(right)
    except Exception as error:  # the type's own code
        return f"its result cannot be made dense: {type(error).__name__}: {first_line(error)}"
    if len(leaves) != len(others):
        return f"has {len(leaves)} results, not {len(others)}"
    return next(filter(None, (_of_leaf(one, other, values) for one, other in zip(leaves, others, strict=True))), "")


def lost(subject: Subject, found: Any, right: Any) -> str:
    """Which metadata results do not have, or have otherwise than the sample; empty if none."""
    if not subject.metadata:
        return ""
    for one, other in zip(tree_leaves(found), tree_leaves(right), strict=False):
        if not isinstance(other, torch.Tensor):
            continue
        if not isinstance(one, subject.type):
            return f"the result is a {type(one).__name__}, without {', '.join(subject.metadata)}"
        for name in subject.metadata:
            own, expected = getattr(one, name, None), getattr(subject.sample, name)
            if own is not expected and own != expected:
                return f"{name} is {own!r}, not {expected!r}"
    return ""


def kinds(found: Any) -> Sequence[str]:
    """The names of the types of the results."""
    return [type(leaf).__name__ for leaf in tree_leaves(found)]


def _of_leaf(one: Any, other: Any, values: bool) -> str:
    if not isinstance(other, torch.Tensor):
        return _of_value(one, other)
    if not isinstance(one, torch.Tensor):
        return f"gives a {type(one).__name__}, not a tensor"
    if one.shape != other.shape:
        return f"shape {[*one.shape]}, not {[*other.shape]}"
    if one.dtype != other.dtype:
        return f"dtype {one.dtype}, not {other.dtype}"
    if not values:
        return ""
    one, other = _plain(one), _plain(other)
    tolerance = _LOOSE.get(other.dtype, _EXACT)
    if torch.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True):
        return ""
    if other.dtype is torch.bool:
        return "values differ"
    return f"values differ by {(one - other).abs().max().item():.1e}"


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_quantized:
        return tensor.dequantize()
    return (tensor if tensor.layout is torch.strided else tensor.to_dense()).cpu()


def _of_value(one: Any, other: Any) -> str:
    if isinstance(other, float) and isinstance(one, (int, float)):
        same = one == other or abs(one - other) <= 1e-4 * abs(other) or (one != one and other != other)
        return "" if same else f"gives {one}, not {other}"
    if isinstance(other, (bool, int, str, tuple, torch.dtype, torch.device)) and one != other:
        return f"gives {one!r}, not {other!r}"[:200]
    return ""


def first_line(error: Exception) -> str:
    """The first line of what an exception says."""
    return (str(error).splitlines() or [""])[0][:200]

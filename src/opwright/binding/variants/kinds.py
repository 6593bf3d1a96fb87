"""The kind of a call: everything about its arguments that a kernel is specialised to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from opwright.ir.expressions.exact import exact

Key = tuple[Any, ...]
CONSTANT_TYPES = (type(None), bool, int, float, str, torch.dtype)


def are_constants(values: Iterable[object]) -> bool:
    """Whether all are Python values that a kernel can be specialised to."""
    return all(type(value) in CONSTANT_TYPES for value in values)


def constant_key(value: Any) -> Key:
    """A key of a constant that tells 1 from True, 0.0 from -0.0, and NaN from -NaN."""
    return (type(value), value if value and value == value else exact(value))


def kind_of(arguments: Sequence[Any], *, gradients: bool = True) -> Key:
    """Dtype, device, layout and the sizes that are one, for every tensor; values of the rest.

    Args:
        arguments: The arguments of the call.
        gradients: Whether it matters which tensors require gradients.
    """
    return tuple(
        (str(a.dtype), a.device.type, str(a.layout), gradients and a.requires_grad, tuple(s == 1 for s in a.shape))
        if isinstance(a, torch.Tensor)
        else (type(a).__name__, repr(a), a != a and exact(a))
        for a in arguments
    )

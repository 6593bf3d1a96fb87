"""The kind of a call: everything about its arguments that a kernel is specialised to."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

import torch

from opwright.binding.environment import PLAIN_TYPES
from opwright.ir.expressions.exact import exact

Key = tuple[Any, ...]
_is_grad_enabled = torch.is_grad_enabled
CONSTANT_TYPES = (type(None), bool, int, float, str, torch.dtype)


def are_constants(values: Iterable[object]) -> bool:
    """Whether all are Python values that a kernel can be specialised to."""
    return all(type(value) in CONSTANT_TYPES for value in values)


def constant_key(value: Any) -> Key:
    """A key of a constant that tells 1 from True, 0.0 from -0.0, and NaN from -NaN."""
    return (type(value), value if value and value == value else exact(value))


def call_of(arguments: Iterable[Any]) -> Key:
    """What is compared to leave a call to the function, as one before it: less than its kind, in a tenth of the time.

    The function is right for every call; so this decides only what is faster.
    """
    return (
        _is_grad_enabled(),
        *[
            (type(a), a.dtype, a.device, a.dim(), a.requires_grad) if type(a) in PLAIN_TYPES else (type(a), a)
            for a in arguments
        ],
    )


def is_among(calls: Container[Key], arguments: Iterable[Any]) -> bool:
    """Whether a call is one of those noted by `call_of`."""
    try:
        return call_of(arguments) in calls
    except TypeError:  # an argument cannot be hashed; it is no constant
        return False


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

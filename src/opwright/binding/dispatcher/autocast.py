"""Calls under autocast, by the operator's policy.

policy      arguments of floating point are cast to        and then
None                                                       the reference runs, whose operations autocast sees
"low"       the low dtype of autocast                      the operator runs as if there were no autocast
"fp32"      float32                                        the same
"promote"   the widest dtype among them                    the same

As in torch, float64 is not cast, and neither are tensors on a device without autocast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from opwright.errors import AutocastRefused, Place

AutocastPolicy = Literal["low", "fp32", "promote"]
KEYS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}


def check_policy(policy: AutocastPolicy, mutates: Sequence[str], place: Place | None) -> None:
    """Refuse an unknown policy, and casts of mutated arguments.

    Args:
        policy: The word.
        mutates: The arguments.
        place: Where the operator is defined.

    Raises:
        AutocastRefused: Either.
    """
    words = get_args(AutocastPolicy)
    if policy not in words:
        raise AutocastRefused(
            f"autocast={policy!r} is no policy",
            place=place,
            hint=f"write one of {', '.join(map(repr, words))}, or leave it out",
        )
    if mutates:
        raise AutocastRefused(
            f"autocast={policy!r} would change a copy of '{mutates[0]}', which mutates= names",
            place=place,
            hint="leave autocast= out: the operations of the function then follow autocast's own rules",
        )


def is_autocast() -> bool:
    """Whether autocast is on for a kind of device; compilers can trace this."""
    return any(map(torch.is_autocast_enabled, KEYS))


def without_autocast(policy: AutocastPolicy, call: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Call with the arguments cast by the policy, and autocast off."""
    return _switched_off([device for device in KEYS if torch.is_autocast_enabled(device)], call, _cast(policy, args))


def _switched_off(devices: Sequence[str], call: Callable[..., Any], args: Sequence[Any]) -> Any:
    """One device at a time, in a form that compilers can trace."""
    if not devices:
        return call(*args)
    with torch.autocast(devices[0], enabled=False):
        return _switched_off(devices[1:], call, args)


def _cast(policy: AutocastPolicy, args: Sequence[Any]) -> Sequence[Any]:
    moving = [leaf for leaf in tree_leaves(list(args)) if isinstance(leaf, torch.Tensor) and _is_eligible(leaf)]
    if not moving:
        return args
    dtypes = {
        "low": lambda: torch.get_autocast_dtype(moving[0].device.type),
        "fp32": lambda: torch.float32,
        "promote": lambda: functools.reduce(torch.promote_types, [tensor.dtype for tensor in moving]),
    }
    dtype = dtypes[policy]()
    cast: Sequence[Any] = tree_map_only(torch.Tensor, lambda t: t.to(dtype) if _is_eligible(t) else t, list(args))
    return cast


def _is_eligible(tensor: torch.Tensor) -> bool:
    device = tensor.device.type
    is_here = device in KEYS and torch.is_autocast_enabled(device)
    return is_here and tensor.is_floating_point() and tensor.dtype is not torch.float64

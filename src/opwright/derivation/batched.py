"""Batches: a reference over the first dimension of some of its arguments, as `torch.vmap` defines it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from opwright.tracing.decompositions.composed import Composed
from opwright.tracing.interface.aliases import MAY_COPY
from opwright.tracing.interface.signature import Parameter, Signature

Randomness = Literal["error", "different", "same"]


def batched_reference(
    reference: Callable[..., Any], arity: int, batched: Sequence[int], randomness: Randomness
) -> Callable[..., Any]:
    """Make the function that maps a reference over the first dimension of some arguments.

    Args:
        reference: The function as written.
        arity: How many arguments it takes.
        batched: Positions of the arguments that have a batch.
        randomness: What `torch.vmap` should do with random numbers.
    """
    in_dims = tuple(0 if position in batched else None for position in range(arity))

    def over_batch(*arguments: Any) -> Any:
        with Composed(1):  # torch's own norms need known sizes
            return torch.vmap(reference, in_dims, randomness=randomness)(*arguments)

    if hasattr(reference, MAY_COPY):
        setattr(over_batch, MAY_COPY, True)
    over_batch.__name__ = f"{reference.__name__}_vmap"
    return over_batch


def batched_signature(signature: Signature) -> Signature:
    """The parameters of `batched_reference`."""
    parameters = tuple(Parameter(p.name, p.kind, p.optional, type=p.type) for p in signature.parameters)
    return Signature(parameters, signature.outputs, signature.structured)

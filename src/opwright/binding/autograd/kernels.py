"""Runs the kernels of a variant, and tells when they fall through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from opwright.binding.environment import require_gradients
from opwright.binding.variants.variant import Variant
from opwright.errors import NoKernel
from opwright.tracing.interface.memory import given_twice, lie_row_by_row
from opwright.tracing.interface.orders import orders_of


class Declined(Exception):
    """The guards of every loaded variant fail for these arguments."""


def run_forward(variants: Iterable[Variant], arguments: Sequence[Any]) -> tuple[Variant, Sequence[torch.Tensor]]:
    """Run the first variant that takes the arguments; its results are outputs, then intermediates.

    Raises:
        Declined: If none does.
    """
    for variant in variants:
        made = run_variant(variant, arguments)
        if made is not None:
            return variant, made
    raise Declined


def why_declined(variants: Iterable[Variant], arguments: Sequence[Any]) -> NoKernel:
    """Why none of the variants takes the arguments, of which the last was made for them."""
    if any(variant.needs_row_major and not _lies_for(variant, arguments) for variant in variants):
        return NoKernel(
            "it draws random numbers, or looks at how its arguments lie in memory, and its kernels are for contiguous "
            "ones",
            hint="pass them .contiguous()",
        )
    return NoKernel("a guard of its new kernel fails for these arguments")


def run_variant(variant: Variant, arguments: Sequence[Any]) -> Sequence[torch.Tensor] | None:
    """Outputs, then intermediates; None if a guard of the variant fails."""
    if variant.needs_row_major and not _lies_for(variant, arguments):
        return None
    if variant.plan.asks_for_identity and given_twice(arguments):
        return None
    if variant.plan.records_unasked and require_gradients(arguments):
        return None
    if variant.plan.orders != orders_of(arguments):
        return None
    if variant.only_tensors:
        made = variant.forward(*arguments)
    elif all(guard.holds(arguments[p].item()) for p, guard in variant.plan.number_guards):
        made = variant.forward(*[arguments[position] for position in variant.plan.tensors])
    else:
        return None
    if variant.forward_single:
        return None if made is None else (made,)
    return None if made[0] is None else made


def _lies_for(variant: Variant, arguments: Sequence[Any]) -> bool:
    return lie_row_by_row(arguments, whole_memory=variant.plan.needs_whole_memory)


def run_backward(
    variant: Variant, saved: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor], sizes: Sequence[int] = ()
) -> Sequence[torch.Tensor] | None:
    """The gradients of `plan.gradients`; None if the kernel falls through, because an allocation failed.

    Args:
        variant: Whose backward kernel runs.
        saved: What the forward pass saved: contributing arguments, then results.
        cotangents: One for each output that has one.
        sizes: Those of `plan.saved.sizes`.
    """
    assert variant.backward is not None
    read = saved if variant.backward_reads is None else [saved[position] for position in variant.backward_reads]
    found = variant.backward(*read, *cotangents, *sizes)
    if variant.backward_single:
        return None if found is None else (found,)
    return None if found[0] is None else found

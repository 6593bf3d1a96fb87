"""Gradients of a call by its own kernels, where what the function read outside has changed since.

A backward pass of some of the outputs, or of some gradients, is derived when it is first asked for: from the
function, in the state of the call. A model that writes to its own configuration between the call of one of its parts
and the backward pass has left that state; the kernels of the call are from before. They take a cotangent for every
output, and a zero for one that was not used is right unless it meets an infinity. Then it is NaN: gradients that are
finite are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from opwright.binding.autograd.kernels import run_backward, run_variant
from opwright.binding.environment import is_transformed
from opwright.binding.variants.states import OutsideChanged
from opwright.binding.variants.variant import Plan, Variant


def differentiated(
    variant: Variant, arguments: Sequence[Any], cotangents: Sequence[Any], intermediates: Sequence[Any], plan: Plan
) -> Sequence[Any]:
    """The gradients of a plan, which can be differentiated again where that is asked for.

    Args:
        variant: What ran forward.
        arguments: The arguments of the call.
        cotangents: Those of `plan.tangents`.
        intermediates: What was saved besides arguments and results.
        plan: That of the variant, with the outputs that were used and the gradients that are wanted.

    Raises:
        OutsideChanged: If something outside has changed, and the kernels of the call do not do.
    """
    try:
        return variant.differentiate(arguments, [*cotangents, *plan.saved.given(intermediates)], plan)
    except OutsideChanged:
        is_followed = torch.is_grad_enabled() or is_transformed()
        found = None if is_followed else _by_its_kernels(variant, arguments, cotangents, plan)
        if found is None:
            raise
        return found


def _by_its_kernels(
    variant: Variant, arguments: Sequence[Any], cotangents: Sequence[Any], plan: Plan
) -> Sequence[torch.Tensor] | None:
    """The gradients, from both kernels again; None if one falls through, or gradients are not finite."""
    arguments = variant.plan.laid_out(arguments)
    made = run_variant(variant, arguments)
    if made is None or variant.backward is None:
        return None
    whole, flowing = variant.plan, dict(zip(plan.tangents, cotangents, strict=True))
    every = [flowing[p] if p in flowing else torch.zeros_like(made[p]) for p in whole.tangents]
    saved = [*(arguments[p] for p in whole.saved.contributing), *(made[p] for p in variant.kept_results)]
    sizes = [arguments[position].shape[dimension] for position, dimension in whole.saved.sizes]
    gradients = run_backward(variant, saved, every, sizes)
    if gradients is None:
        return None
    by_position = dict(zip(whole.gradients, gradients, strict=True))
    found = [by_position[position] for position in plan.gradients]
    is_right = len(flowing) == len(every) or all(bool(torch.isfinite(each).all()) for each in found)
    return found if is_right else None

"""Gradients by the reference: what serves where a backward kernel cannot, and all that is differentiated twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.binding.environment import is_transformed, recorded_below_autograd
from opwright.derivation.pull_back import pull_back


def gradients_by_reference(
    reference: Callable[..., Any],
    arguments: Sequence[Any],
    tangents: Sequence[int],
    cotangents: Sequence[torch.Tensor | None],
    wanted: Sequence[int],
    *,
    allow_unused: bool = False,
) -> tuple[Any, ...]:
    """Differentiate the reference; differentiable in its turn where gradients are recorded or transformed.

    Args:
        reference: The function as written, of arguments in order.
        arguments: The arguments of the forward pass.
        tangents: Positions of the outputs that can have a cotangent.
        cotangents: These gradients; None for outputs that were not used.
        wanted: Positions of the arguments whose gradients are asked for.
        allow_unused: Give None for an argument that the outputs that were used do not depend on; else zeros.
    """
    used = [(place, cotangent) for place, cotangent in zip(tangents, cotangents, strict=True) if cotangent is not None]
    if not used:
        return (None,) * len(wanted)
    tangents, cotangents = zip(*used, strict=True)
    if torch.is_inference_mode_enabled():
        with torch.inference_mode(False), torch.no_grad():
            normal = [_outside_inference(value) for value in (*arguments, *cotangents)]
            given, flowing_in = normal[: len(arguments)], normal[len(arguments) :]
            return gradients_by_reference(reference, given, tangents, flowing_in, wanted, allow_unused=allow_unused)
    function = lambda given: _listed(reference(*given))  # noqa: E731
    if is_transformed():
        return pull_back(function, arguments, tangents, cotangents, wanted, allow_unused=allow_unused)
    with recorded_below_autograd():
        return pull_back(function, arguments, tangents, cotangents, wanted, allow_unused=allow_unused)


def _outside_inference(value: Any) -> Any:
    """A tensor of inference mode cannot be differentiated; a copy can."""
    return value.clone() if isinstance(value, torch.Tensor) and value.is_inference() else value


def _listed(returned: Any) -> Sequence[torch.Tensor]:
    return (returned,) if isinstance(returned, torch.Tensor) else returned

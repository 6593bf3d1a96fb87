"""Gradients by the reference: what serves where a backward kernel cannot, and all that is differentiated twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.binding.environment import is_transformed, recording


def gradients_by_reference(
    reference: Callable[..., Any],
    arguments: Sequence[Any],
    tangents: Sequence[int],
    incoming: Sequence[torch.Tensor],
    wanted: Sequence[int],
) -> tuple[torch.Tensor, ...]:
    """Differentiate the reference; differentiable in its turn where gradients are recorded or transformed.

    Args:
        reference: The function as written, of arguments in order.
        arguments: The arguments of the forward pass.
        tangents: Positions of the outputs that have an incoming gradient.
        incoming: These gradients.
        wanted: Positions of the arguments whose gradients are asked for.
    """
    if torch.is_inference_mode_enabled():
        with torch.inference_mode(False), torch.no_grad():
            normal = [_outside_inference(value) for value in (*arguments, *incoming)]
            given, flowing_in = normal[: len(arguments)], normal[len(arguments) :]
            return gradients_by_reference(reference, given, tangents, flowing_in, wanted)
    given = list(arguments)
    if is_transformed():
        return _pulled_back(reference, given, tangents, incoming, wanted)
    create_graph = torch.is_grad_enabled()
    with recording():
        for position in wanted:
            # An alias: what an argument does through another one, or given twice, is the caller's to add up.
            alias = torch.ops.aten.alias(given[position])
            given[position] = alias if alias.requires_grad else alias.detach().requires_grad_()
        outputs = _listed(reference(*given))
        flowing = [
            (outputs[p], gradient) for p, gradient in zip(tangents, incoming, strict=True) if outputs[p].requires_grad
        ]
        sources = [given[position] for position in wanted]
        if not flowing:
            return tuple(torch.zeros_like(source) for source in sources)
        return torch.autograd.grad(
            [output for output, _ in flowing],
            sources,
            [gradient for _, gradient in flowing],
            create_graph=create_graph,
            materialize_grads=True,
        )


def _pulled_back(
    reference: Callable[..., Any],
    given: list[Any],
    tangents: Sequence[int],
    incoming: Sequence[torch.Tensor],
    wanted: Sequence[int],
) -> tuple[torch.Tensor, ...]:
    """The same inside of a transform, where `requires_grad_` is refused."""

    def of_sources(*sources: torch.Tensor) -> list[torch.Tensor]:
        for position, source in zip(wanted, sources, strict=True):
            given[position] = source
        outputs = _listed(reference(*given))
        return [outputs[position] for position in tangents]

    _, pull, *_ = torch.func.vjp(of_sources, *[given[position] for position in wanted])
    gradients: tuple[torch.Tensor, ...] = pull(list(incoming))
    return gradients


def _outside_inference(value: Any) -> Any:
    """A tensor of inference mode cannot be differentiated; a copy can."""
    return value.clone() if isinstance(value, torch.Tensor) and value.is_inference() else value


def _listed(returned: Any) -> Sequence[torch.Tensor]:
    return (returned,) if isinstance(returned, torch.Tensor) else returned

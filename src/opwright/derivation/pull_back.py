"""The gradients of a function at some arguments, by autograd or, if that is refused, by `torch.func.vjp`.

A wheel carries this module, so torch is all it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.tracing.torch_hooks.functorch import are_active, is_forward_mode


def pull_back(
    function: Callable[[Sequence[Any]], Sequence[torch.Tensor]],
    arguments: Sequence[Any],
    places: Sequence[int],
    cotangents: Sequence[torch.Tensor],
    wanted: Sequence[int],
    *,
    allow_unused: bool = False,
) -> tuple[Any, ...]:
    """Differentiate a function; the result is differentiable if gradients are recorded or transformed.

    Args:
        function: Takes the arguments in order and returns its outputs as a sequence.
        arguments: Where to differentiate it.
        places: Positions of the outputs that have a cotangent.
        cotangents: The cotangents of these outputs.
        wanted: Positions of the arguments whose gradients are asked for.
        allow_unused: Give None, where torch can, for an argument that these outputs do not depend on; else zeros.
    """
    given = list(arguments)
    if are_active() or is_forward_mode():
        return _by_vjp(function, given, places, cotangents, wanted)
    tensors = [each for each in (*given, *cotangents) if isinstance(each, torch.Tensor)]
    create_graph = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    with torch.enable_grad():
        for position in wanted:
            # An alias, so that an argument that is given twice gets separate gradients, which the caller adds up.
            alias = torch.ops.aten.alias(given[position])
            given[position] = alias if alias.requires_grad else alias.detach().requires_grad_()
        outputs = function(given)
        sources = [given[position] for position in wanted]
        chosen = [outputs[place] for place in places]
        return gradients(chosen, sources, cotangents, create_graph=create_graph, allow_unused=allow_unused)


def gradients(
    outputs: Sequence[torch.Tensor],
    sources: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
    *,
    create_graph: bool,
    retain_graph: bool | None = None,
    allow_unused: bool = False,
) -> tuple[Any, ...]:
    """The gradients that autograd gives; zeros, or None, for a source that no output depends on."""
    flowing = [(out, given) for out, given in zip(outputs, cotangents, strict=True) if out.requires_grad]
    if not flowing:
        return tuple(None if allow_unused else torch.zeros_like(source) for source in sources)
    return torch.autograd.grad(
        [out for out, _ in flowing],
        sources,
        [given for _, given in flowing],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
        materialize_grads=not allow_unused,
    )


def _by_vjp(
    function: Callable[[Sequence[Any]], Sequence[torch.Tensor]],
    given: list[Any],
    places: Sequence[int],
    cotangents: Sequence[torch.Tensor],
    wanted: Sequence[int],
) -> tuple[torch.Tensor, ...]:
    """For transforms, where `requires_grad_` is refused, and forward mode, where `detach` drops tangents."""

    def of_sources(*sources: torch.Tensor) -> list[torch.Tensor]:
        for position, source in zip(wanted, sources, strict=True):
            given[position] = source
        outputs = function(given)
        return [outputs[place] for place in places]

    _, pull, *_ = torch.func.vjp(of_sources, *[given[position] for position in wanted])
    gradients: tuple[torch.Tensor, ...] = pull(list(cotangents))
    return gradients

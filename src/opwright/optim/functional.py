"""An optimizer's step as a function: for meta-learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from opwright.optim.definition import Definition
from opwright.optim.kinds import call


def functional(
    definition: Definition,
    params: Sequence[torch.Tensor],
    grads: Sequence[torch.Tensor | None],
    states: Sequence[Mapping[str, torch.Tensor]] | None,
    step: Any,
    hyper: Mapping[str, Any],
) -> tuple[list[torch.Tensor], list[dict[str, torch.Tensor]]]:
    """Compute a step with ordinary operations, differentiable in everything and as often as these are.

    Args:
        definition: The update of one parameter.
        params: The parameters.
        grads: Their gradients; None leaves a parameter as it is.
        states: For each parameter its states by name; None before the first step.
        step: Counts from 1.
        hyper: Hyper-parameters: numbers, or tensors without dimensions.

    Returns:
        The new parameters, and the new states.
    """
    found = states if states is not None else [{}] * len(params)
    new_params: list[torch.Tensor] = []
    new_states: list[dict[str, torch.Tensor]] = []
    for param, grad, state in zip(params, grads, found, strict=True):
        if grad is None:
            new_params.append(param)
            new_states.append(dict(state))
            continue
        given = [state[name] if name in state else definition.start(name, param, hyper) for name in definition.states]
        new, *made = call(definition, param, grad, given, step, hyper)
        new_params.append(new)
        new_states.append({n: value for n, value in zip(definition.states, made, strict=True) if value is not None})
    return new_params, new_states

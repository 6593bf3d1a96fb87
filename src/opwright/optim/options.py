"""Options of an optimizer beside its hyper-parameters, and the refusal of values that mean nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from opwright.errors import UpdateRefused
from opwright.optim.definition import Definition
from opwright.tracing.interface.place import place_of

Rounding = Literal["nearest", "stochastic"]
StateDtype = torch.dtype | Mapping[str, torch.dtype] | None


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for all groups.

    Attributes:
        max_grad_norm: The gradients of all groups together are scaled down to this norm; None for no limit.
        state_dtype: The dtype of floating states, or of each by name; None for that of the parameter.
        rounding: How results are rounded to half types.
        master: Whether parameters of half types have a copy in float32 that is updated in their place.
        free_grads: Whether gradients are released when they are used.
    """

    max_grad_norm: float | None = None
    state_dtype: StateDtype = None
    rounding: Rounding = "nearest"
    master: bool = False
    free_grads: bool = False

    def dtype_of(self, state: str) -> torch.dtype | None:
        """The dtype of a state; None for that of the parameter."""
        return self.state_dtype.get(state) if isinstance(self.state_dtype, Mapping) else self.state_dtype


def refuse_differentiable(definition: Definition, group: Mapping[str, Any]) -> None:
    """Refuse a group whose steps torch.optim would record for autograd.

    Raises:
        UpdateRefused: If it is one.
    """
    if "differentiable" not in definition.hyper and group.get("differentiable"):
        raise UpdateRefused(
            f"{definition.name} takes no differentiable=True: its steps change parameters in place",
            place=place_of(definition.function),
            hint=f"use {definition.name}.functional(params, grads, states, step), which is differentiable",
        )


def check_options(options: Options, name: str, states: tuple[str, ...]) -> None:
    """Refuse values of options that mean nothing.

    Raises:
        ValueError: If there is one.
    """
    if options.rounding not in ("nearest", "stochastic"):
        raise ValueError(f'Invalid rounding: {options.rounding!r}, it is "nearest" or "stochastic"')
    if options.max_grad_norm is not None and not options.max_grad_norm >= 0:
        raise ValueError(f"Invalid max_grad_norm value: {options.max_grad_norm}")
    named = options.state_dtype if isinstance(options.state_dtype, Mapping) else {}
    if unknown := [state for state in named if state not in states]:
        raise ValueError(f"Invalid state_dtype: {name} has no state '{unknown[0]}', only {', '.join(states) or 'none'}")

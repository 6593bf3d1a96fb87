"""The backward pass as an operator of its own: what runs under `create_graph=True`, and for some of the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from opwright.binding.autograd.between_outputs import Cut, cut_gradients
from opwright.binding.transforms.safe import SafeTransforms
from opwright.binding.variants.states import State
from opwright.binding.variants.variant import Plan


class Differentiating:
    """Differentiates the calls of an operator.

    Args:
        state: The state of the calls.
        transforms: The operator's transforms.
    """

    def __init__(self, state: State, transforms: SafeTransforms) -> None:
        self._state = state
        self._transforms = transforms

    def __call__(self, arguments: Sequence[Any], values: Sequence[Any], plan: Plan) -> Sequence[Any]:
        """The gradients of a plan, of arguments, then cotangents and intermediates.

        Raises:
            OutsideChanged: If something that the function reads outside has changed since the call.
        """
        given = self._given(arguments, plan)
        found = self._transforms.backward_of(plan)(*plan.laid_out([*given, *values]))
        return (found,) if isinstance(found, torch.Tensor) else found

    def cut(
        self,
        arguments: Sequence[Any],
        cotangents: Mapping[int, Any],
        plan: Plan,
        at: Sequence[int],
        wanted: Sequence[int],
        cut: Cut,
    ) -> Sequence[Any]:
        """What flows from outputs to arguments, or to other outputs: `binding/autograd/between_outputs.py`.

        Raises:
            OutsideChanged: As above.
        """
        given = self._given(arguments, plan)
        places = plan.result.places
        flowing = {places[position]: cotangent for position, cotangent in cotangents.items()}
        where = [places[position] for position in at]
        return cut_gradients(self._transforms.reference, given, plan.gradients, flowing, where, wanted, cut)

    def _given(self, arguments: Sequence[Any], plan: Plan) -> list[Any]:
        """The arguments as the function takes them, if nothing that it reads outside has changed."""
        self._state.ensure_same()
        return [value.item() if p in plan.numbers else value for p, value in enumerate(arguments)]

    def runs_of(self, plan: Plan) -> Any:
        """The tape in C++ of the operator of a plan's gradients; None if there is none for this state."""
        server = getattr(self._transforms.backward_of(plan), "server", None)
        wound = server and server.wound
        return wound[0].runs if wound and wound[0].state is self._state else None

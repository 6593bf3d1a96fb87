"""A plan: which parameters are updated by what, as long as nothing has moved in memory."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from opwright.binding.environment import PLAIN_TYPES
from opwright.binding.variants.states import State
from opwright.optim.buckets import Bucket, run_composed
from opwright.optim.definition import STEP, Definition
from opwright.optim.entries import Entry, Manner, copy_gradient, entry_of, overlapping
from opwright.optim.kinds import Kind
from opwright.optim.variants import Variants


class Plan:
    """The parameters with gradients, in buckets of one kind.

    Args:
        definition: The update.
        variants: Its kernels.
        params: The parameters that have gradients.
        states: Their states.
        groups: The number of the group of each.
        hyper: The hyper-parameters of each group.
        maximize: Whether each group is maximized.
        manner: How the optimizer updates.
    """

    def __init__(
        self,
        definition: Definition,
        variants: Variants,
        params: Sequence[torch.Tensor],
        states: Sequence[dict[str, Any]],
        groups: Sequence[int],
        hyper: Sequence[Mapping[str, Any]],
        maximize: Sequence[bool],
        manner: Manner,
    ) -> None:
        self._definition = definition
        self._hyper = hyper
        self._manner = manner
        self.params = params
        self.groups = groups
        self._states = states
        self.entries = [
            entry_of(definition, param, state, number, group, hyper[group], maximize[group], manner)
            for number, (param, state, group) in enumerate(zip(params, states, groups, strict=True))
        ]
        shared = overlapping(self.entries)
        by_kind: dict[Kind, list[int]] = {}
        self._composed: list[int] = []
        for position, entry in enumerate(self.entries):
            if entry.served and position not in shared:
                by_kind.setdefault(entry.kind, []).append(position)
            else:
                self._composed.append(position)
        self._buckets = [
            Bucket(definition, variants, kind, positions, [self.entries[p] for p in positions],
                   hyper[self.entries[positions[0]].group])
            for kind, positions in by_kind.items()
        ]  # fmt: skip
        self._held = self._now_held()
        self._places = self._now_places()
        self._shapes = self._now_shapes()
        self._gradients = [_facts(entry.grad) for entry in self.entries]
        self.written = [*params, *(t for t in self._held if t is not None)]
        if manner.written:
            self.written = list(params)

    def holds(self, params: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor], manner: Manner) -> bool:
        """Whether everything is where it was, except that gradients may be others of the same strides."""
        return (
            len(params) == len(self.params)
            and all(map(operator.is_, params, self.params))
            and manner == self._manner
            and all(map(operator.is_, self._now_held(), self._held))
            and self._now_places() == self._places
            and self._now_shapes() == self._shapes
            and list(map(_facts, gradients)) == self._gradients
        )

    def _now_held(self) -> list[Any]:
        names = (STEP, *self._definition.states, "master")
        return [state.get(name) for state in self._states for name in names]

    def _now_places(self) -> list[int]:
        return [t.data_ptr() for t in self.params if type(t) in PLAIN_TYPES] + [
            t.data_ptr() for t in self._held if t is not None and type(t) in PLAIN_TYPES
        ]

    def _now_shapes(self) -> list[Any]:
        return [(p.shape, p.stride(), p.dtype) for p in self.params if p.layout is torch.strided]

    def run(
        self,
        gradients: Sequence[torch.Tensor],
        state: State | None,
        numbers: Sequence[Mapping[str, float]],
        seed: int,
        *,
        quiet: bool,
    ) -> None:
        """Update all parameters.

        Args:
            gradients: Their gradients.
            state: What the definition reads outside.
            numbers: For each group, the numbers among its hyper-parameters.
            seed: Of random rounding.
            quiet: Whether kernels may run: nothing must see the operations.
        """
        for entry, grad in zip(self.entries, gradients, strict=True):
            if entry.copied:
                copy_gradient(entry, grad)
            elif entry.grad is not grad:
                entry.tensors["grad"] = torch.view_as_real(grad) if grad.is_complex() else grad
            entry.grad = grad
        composed = self._composed
        if quiet:
            for number, bucket in enumerate(self._buckets):
                bucket.run(state, numbers, seed + (number << _SEEDS_APART))
        else:
            composed = list(range(len(self.entries)))
        for position in composed:
            entry = self.entries[position]
            given = {**numbers[entry.group], STEP: float(entry.state[STEP]) + 1}
            run_composed(self._definition, self._hyper[entry.group], entry, given, seed)
        if self._manner.written:
            self._write_back(gradients)

    def _write_back(self, gradients: Sequence[torch.Tensor]) -> None:
        for entry, grad in zip(self.entries, gradients, strict=True):
            if entry.copied and grad.layout is torch.strided:
                made = entry.tensors["grad"]
                grad.copy_(torch.view_as_complex(made) if grad.is_complex() else made)


_SEEDS_APART = 40


def _facts(grad: torch.Tensor) -> tuple[Any, ...]:
    if type(grad) not in PLAIN_TYPES or grad.layout is not torch.strided:
        return (type(grad), grad.layout)
    return grad.stride(), grad.dtype, grad.is_neg(), grad.is_conj()


__all__ = ["Entry", "Plan"]

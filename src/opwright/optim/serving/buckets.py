"""Buckets: the parameters of one kind, and what updates them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from opwright.errors import OpwrightError
from opwright.optim.definition import STEP, Definition
from opwright.optim.factor import Factor, Numbers, with_factor
from opwright.optim.kinds import Kind, Rounded, gathered, result_names, to_nearest, updated
from opwright.optim.rounding import rounded_at_random
from opwright.optim.serving.entries import Entry
from opwright.optim.serving.kernels import Kernels, Variant, Wanted
from opwright.optim.serving.parts import rounded_in_parts, whole_of
from opwright.optim.serving.skips import Skip, Undecided
from opwright.optim.serving.tables import TensorTable

_SEED_BITS = 64


class Given(NamedTuple):
    """What a step is given.

    Attributes:
        state: What the definition reads outside; None if that is not known, and no kernel can serve.
        numbers: For each group, the numbers among its hyper-parameters.
        seed: Of random rounding.
        factor: Of the gradients; None if there is none.
        skip: Whether nothing may change, where kernels look at that; None if it is known that it may.
        undecided: Is told what was counted nevertheless; there is one if there is such a `skip`.
    """

    state: Hashable
    numbers: Sequence[Numbers]
    seed: int
    factor: Factor | None = None
    skip: Skip | None = None
    undecided: Undecided | None = None


class Bucket:
    """The parameters of one kind.

    Args:
        definition: The update.
        variants: Its kernels.
        kind: The kind.
        positions: Where the parameters stand in a plan.
        entries: The parameters, all on one device.
        hyper: The hyper-parameters of one of their groups.
    """

    def __init__(
        self,
        definition: Definition,
        variants: Kernels,
        kind: Kind,
        positions: Sequence[int],
        entries: Sequence[Entry],
        hyper: Mapping[str, Any],
    ) -> None:
        self._definition = definition
        self._variants = variants
        self._kind = kind
        self._hyper = hyper
        self._device = entries[0].param.device
        self._tables: dict[Variant, TensorTable] = {}
        self.positions = positions
        self.entries = entries

    def run(self, given: Given, gradients: Sequence[int], point_to: Callable[[], None], seed: int) -> None:
        """Update all parameters.

        Args:
            given: What the step is given.
            gradients: The addresses of the gradients.
            point_to: Lets all entries have the gradients.
            seed: Of random rounding.
        """
        state, skip = given.state, given.skip
        numbers = with_factor(given.numbers, given.factor, self._device if self._kind.distant_factor else None)
        remaining = self.entries
        known = [] if state is None else self._variants.known(state, self._kind, self._device)
        if known and (skip is None or known[0].launch is not None):
            rest = self._table(known[0]).run(gradients, numbers, seed, skip)
            if not rest:
                if given.undecided is not None:
                    given.undecided.count(entry.state for entry in self.entries)
                return
            if known[0].one_by_one:
                remaining = [self.entries[position] for position in rest]
        if skip is not None and skip.now():
            return
        point_to()
        refusal = None
        if state is not None:
            remaining = self._by_known(state, remaining, numbers, seed)
        while state is not None and remaining and refusal is None:
            of_entry = self._numbers_of(remaining[0], numbers)
            own = {name: value for name, value in of_entry.items() if not isinstance(value, torch.Tensor)}
            whole = whole_of(remaining[0].tensors, remaining[0].specs)
            try:
                new = self._variants.another(state, Wanted(self._kind, self._hyper, whole, own))
            except OpwrightError as refused:
                refusal = refused
                break
            left = self._by(new, remaining, numbers, seed)
            if len(left) == len(remaining):
                break  # not even for the numbers that it was derived for: Python raises for them
            remaining = left
        for entry in remaining:
            run_composed(self._definition, self._hyper, entry, self._numbers_of(entry, numbers), seed)
        if refusal is not None:  # after the definition, which may raise for the same reason
            self._variants.fallbacks.tell(refusal)

    def decides_later(self, state: Hashable) -> bool:
        """Whether its kernel can leave everything as it is by itself: it does all that a step changes but the count.

        Args:
            state: What the definition reads outside; None if no kernel can serve.
        """
        known = [] if state is None else self._variants.known(state, self._kind, self._device)
        return bool(known) and known[0].launch is not None and not keeps_numbers(self._kind)

    def _by_known(
        self, state: Hashable, remaining: Sequence[Entry], numbers: Sequence[Numbers], seed: int
    ) -> Sequence[Entry]:
        """Update what the variants so far serve; returns the rest. The variant of the last parameters comes first."""
        known = self._variants.known(state, self._kind, self._device)
        for variant in tuple(known):
            remaining = self._by(variant, remaining, numbers, seed)
            if not remaining:
                known.remove(variant)
                known.insert(0, variant)
                break
        return remaining

    def _by(self, variant: Variant, entries: Sequence[Entry], numbers: Sequence[Numbers], seed: int) -> Sequence[Entry]:
        """Update what a variant serves; returns the rest."""
        refused = self._in_table(variant, entries, numbers, seed)
        if not refused or len(refused) == len(entries) or variant.one_by_one:
            return [entries[position] for position in refused]
        out = set(refused)
        served = [entry for position, entry in enumerate(entries) if position not in out]
        self._in_table(variant, served, numbers, seed)
        return [entries[position] for position in refused]

    def _in_table(self, variant: Variant, entries: Sequence[Entry], numbers: Sequence[Numbers], seed: int) -> list[int]:
        table = self._table(variant) if entries is self.entries else TensorTable(variant, entries)
        return table.run([entry.tensors["grad"].data_ptr() for entry in entries], numbers, seed)

    def _table(self, variant: Variant) -> TensorTable:
        """The table of all parameters for a variant."""
        if (table := self._tables.get(variant)) is None:
            table = self._tables[variant] = TensorTable(variant, self.entries)
        return table

    def _numbers_of(self, entry: Entry, numbers: Sequence[Numbers]) -> Numbers:
        return {**numbers[entry.group], STEP: float(entry.state[STEP]) + 1}


def keeps_numbers(kind: Kind) -> bool:
    """Whether the processor computes states of parameters of a kind in each step, beside their count."""
    return any(state and state.is_number for state in kind.states)


def run_composed(definition: Definition, hyper: Mapping[str, Any], entry: Entry, numbers: Numbers, seed: int) -> None:
    """Update one parameter by the operations of the definition, in place.

    Args:
        definition: The update.
        hyper: The hyper-parameters of its group.
        entry: The parameter.
        numbers: Its numbers, by name: the step too.
        seed: Of random rounding.
    """
    for name, conjugate in entry.conjugated.items():
        entry.tensors[name].copy_(torch.view_as_real(conjugate.resolve_conj()))
    kind, tensors = entry.kind, whole_of(entry.tensors, entry.specs)
    rounded = _rounding(entry, seed)
    made = updated(definition, kind, {**tensors, **numbers}, gathered(hyper, numbers), rounded)
    for name, value in zip(result_names(definition, kind), made, strict=True):
        tensors[name].copy_(value)
    for name, conjugate in entry.conjugated.items():
        conjugate.copy_(torch.view_as_complex(entry.tensors[name]))
    entry.state[STEP] += 1


def _rounding(entry: Entry, seed: int) -> Rounded:
    if not entry.kind.at_random:
        return to_nearest
    place = entry.tensors["param"]
    generator = torch.Generator(place.device).manual_seed((seed + entry.number) % 2 ** (_SEED_BITS - 1))
    return rounded_in_parts(lambda value, dtype: rounded_at_random(value, dtype, generator))

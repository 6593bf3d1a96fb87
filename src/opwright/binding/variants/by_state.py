"""The variants of one operator in each state of what it reads outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opwright.binding.rungs import RungName
from opwright.binding.variants.likeness import likenesses
from opwright.binding.variants.states import Outside, State
from opwright.binding.variants.variants import Variants
from opwright.toolchain.process.forks import Lock


class VariantsByState:
    """The variants of an operator, by state.

    Args:
        outside: Tells the states apart.
        make: Makes the variants for a state.

    Attributes:
        latest: Those that served last; they are tried first.
        example: What the arguments were like of the last call that looked for them; None before the first.
    """

    def __init__(self, outside: Outside, make: Callable[[State], Variants]) -> None:
        self._outside = outside
        self._make = make
        self._lock = Lock()
        self._sets: dict[State, Variants] = {}
        self.latest: Variants | None = None
        self.example: tuple[Any, ...] | None = None

    def now(self) -> Variants:
        """Those for the current state.

        Raises:
            OutsideUnknown: If there are too many states.
        """
        state = self._outside.now()
        found = self._sets.get(state)
        if found is None:
            with self._lock:
                found = self._sets.setdefault(state, self._sets.get(state) or self._make(state))
        self.latest = found
        return found

    def keep_up(self, variants: Variants, args: Sequence[Any]) -> None:
        """Look which numbers change by now, after a call that looked for variants, and keep what it was like."""
        variants.keep_up()
        self.example = likenesses(args)

    def is_beyond(self) -> bool:
        """Whether there were too many states, and none of them is the current one."""
        return self._outside.is_beyond()

    def forget(self, variants: Variants) -> None:
        """Remove the variants of a state that changed during its first trace."""
        if variants.count():
            return
        self._outside.forget(variants.state)
        with self._lock:
            self._sets.pop(variants.state, None)

    @property
    def plain(self) -> bool:
        """Whether every variant returns the results of its kernel unchanged."""
        return all(variants.plain for variants in self._sets.values())

    @property
    def are_waiting(self) -> bool:
        """Whether kernels are being built that no call waits for."""
        return any(variants.is_waiting for variants in self._sets.values())

    @property
    def built_in_s(self) -> float:
        """How long compilers took for a variant that was derived in this process, the longest."""
        return max((variants.built_in_s for variants in self._sets.values()), default=0.0)

    def count(self, rung: RungName | None = None) -> int:
        """How many variants are loaded, of a rung or in all."""
        return sum(variants.count(rung) for variants in self._sets.values())

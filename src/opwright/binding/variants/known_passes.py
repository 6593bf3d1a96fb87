"""Backward passes of some outputs or gradients that Python has run, for C++ to run them from then on.

A model that returns its loss beside its logits is differentiated so at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opwright.binding.variants.variant import Variant

_MOST_PASSES = 8  # of a variant


@dataclass(frozen=True, slots=True)
class KnownPass:
    """A pass, and what runs it.

    Attributes:
        used: The outputs that have a cotangent.
        wanted: The arguments whose gradients are asked for.
        runs: The tape in C++ of the operator of these gradients.
        way: Which of its ways.
        intermediates: Which of those that are saved it takes, besides arguments and cotangents.
        gradients: For each of its results, the argument it belongs to.
    """

    used: tuple[int, ...]
    wanted: tuple[int, ...]
    runs: Any
    way: int
    intermediates: tuple[int, ...]
    gradients: tuple[int, ...]

    def facts(self) -> tuple[Any, ...]:
        """What `native/route.h` is given."""
        return self.used, self.wanted, self.runs, self.way, self.intermediates, self.gradients


class KnownPasses:
    """The known passes of an operator.

    Args:
        changed: Called when there is another one.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._of: dict[Variant, tuple[KnownPass, ...]] = {}

    def of(self, variant: Variant) -> Sequence[KnownPass]:
        """Those of a variant."""
        return self._of.get(variant, ())

    def add(self, variant: Variant, known: KnownPass) -> None:
        """Know a pass, in place of one for the same outputs and gradients."""
        others = [p for p in self.of(variant) if (p.used, p.wanted) != (known.used, known.wanted)]
        if known in self.of(variant) or len(others) >= _MOST_PASSES:
            return
        self._of[variant] = (*others, known)
        self._changed()

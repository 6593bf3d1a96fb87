"""For which values of a number that changes from call to call a trace is valid."""

from __future__ import annotations

from dataclasses import dataclass

from opwright.ir.expressions.integer import RELATIONS


@dataclass(frozen=True, slots=True)
class NumberGuard:
    """What the trace assumed of a number: `sign · name relation bound`."""

    name: str
    sign: int
    relation: str
    bound: float

    def holds(self, value: float) -> bool:
        """Whether it is so for a value."""
        return RELATIONS[self.relation](self.sign * value, self.bound)

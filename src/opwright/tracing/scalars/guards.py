"""For which values of a number that changes from call to call a trace is valid."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_TESTS: Mapping[str, Callable[[float, float], bool]] = {
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class NumberGuard:
    """What the trace assumed of a number: `sign · name relation bound`."""

    name: str
    sign: int
    relation: str
    bound: float

    def holds(self, value: float) -> bool:
        """Whether it is so for a value."""
        return _TESTS[self.relation](self.sign * value, self.bound)

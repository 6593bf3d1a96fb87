"""Schedule the passes of a kernel over its rows: a pass may use the reductions of the passes before it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from opwright.ir.contents import locals_in, needed
from opwright.ir.expressions.expression import Expression
from opwright.ir.program import Kernel, Let, Reduce, Store
from opwright.ir.rows import indexed_by, row_axes, varying_locals


@dataclass(frozen=True, slots=True)
class Phase:
    """One pass over a row, and what is computed once after it.

    Attributes:
        lets: Values of each point that the pass needs, each after those it needs itself.
        reductions: The reductions of the row that it computes.
        stores: What it writes at each point.
        after: Values that are the same for the whole row and can be computed after this pass and not before.
    """

    lets: tuple[Let, ...]
    reductions: tuple[Reduce, ...]
    stores: tuple[Store, ...]
    after: tuple[Let, ...]

    @property
    def values(self) -> tuple[Expression, ...]:
        """What it reduces and writes."""
        return (*(reduction.value for reduction in self.reductions), *(store.value for store in self.stores))


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is computed before the first pass, the passes, and what is written once at the end."""

    before: tuple[Let, ...]
    phases: tuple[Phase, ...]
    once: tuple[Store, ...]

    @property
    def is_single(self) -> bool:
        """Whether there is a single pass, so that rows can be cut into pieces."""
        return len(self.phases) == 1


def schedule(kernel: Kernel) -> Schedule:
    """Order a kernel with rows into passes over a row."""
    varying = varying_locals(kernel)
    levels = _levels(kernel)
    axes = {axis.name for axis in row_axes(kernel)}
    moving = [store for store in kernel.stores if store.reduction is not None or indexed_by(store.indices, axes)]
    level_of_store = {id(store): _level(store.value, levels) for store in kernel.stores}
    reductions = [let for let in kernel.lets if isinstance(let, Reduce)]
    last = max([level_of_store[id(s)] for s in moving] + [levels[r.name] - 1 for r in reductions], default=-1)
    fixed = [let for let in kernel.lets if isinstance(let, Let) and let.name not in varying]
    phases = []
    for number in range(last + 1):
        some_reductions = tuple(reduction for reduction in reductions if levels[reduction.name] == number + 1)
        some_stores = tuple(store for store in moving if level_of_store[id(store)] == number)
        after = tuple(let for let in fixed if levels[let.name] == number + 1)
        phase = Phase((), some_reductions, some_stores, after)
        phases.append(replace(phase, lets=needed_lets(kernel, phase.values, varying)))
    before = tuple(let for let in fixed if levels[let.name] == 0)
    return Schedule(before, tuple(phases), tuple(store for store in kernel.stores if store not in moving))


def needed_lets(
    kernel: Kernel, values: Sequence[Expression], varying: Set[str], known: Set[str] = frozenset()
) -> tuple[Let, ...]:
    """The varying lets that these values are computed from, in order; the search stops at those that are `known`."""
    ends = known | {let.name for let in kernel.lets} - varying
    return tuple(let for let in needed(kernel.lets, values, ends) if isinstance(let, Let))


def _levels(kernel: Kernel) -> dict[str, int]:
    """How many passes each local comes after."""
    levels: dict[str, int] = {}
    for let in kernel.lets:
        levels[let.name] = _level(let.value, levels) + isinstance(let, Reduce)
    return levels


def _level(value: Expression, levels: dict[str, int]) -> int:
    return max((levels[local.name] for local in locals_in(value)), default=0)

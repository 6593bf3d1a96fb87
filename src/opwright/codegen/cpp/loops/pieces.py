"""A long body of a loop in pieces, each of which becomes a loop of its own over a part of a row.

The time that a compiler takes for a loop grows faster than its body: g++ 12 takes 14 s for one of 600 assignments, and
what does not fit into registers goes to the stack anyway. Values that a later piece needs wait in short arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opwright.ir.contents import locals_in
from opwright.ir.expressions.expression import Expression, Load, Local
from opwright.ir.program import Let
from opwright.passes.loops.repeated_work import work

MOST_WORK = 128  # of a piece, in operations such as a sum
_LONG = 256  # the work of a body that is cut


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of the assignments of a body.

    Attributes:
        loads: What it reads from the rows of the kernel.
        given: Values of earlier pieces that it needs.
        lets: What it computes.
        kept: Those of them that later pieces need.
    """

    loads: tuple[Let, ...]
    given: tuple[Let, ...]
    lets: tuple[Let, ...]
    kept: tuple[Let, ...]


def is_long(lets: Sequence[Let], results: Sequence[Expression]) -> bool:
    """Whether a body is cut."""
    return sum(work(value) for value in (*(let.value for let in lets), *results)) > _LONG


def with_results(
    lets: Sequence[Let], names: Sequence[str], results: Sequence[Expression]
) -> tuple[list[Let], list[Expression]]:
    """Assignments with those of results, each where all that it needs is known, and the results in their terms."""
    places = {let.name: place for place, let in enumerate(lets)}
    behind: dict[int, list[Let]] = {}
    locals_: list[Expression] = []
    for name, value in zip(names, results, strict=True):
        if work(value) > 0:
            let = Let(f"{name}_result", value)
            behind.setdefault(max((places[local.name] for local in locals_in(value)), default=-1), []).append(let)
            value = Local(let.name, value.dtype)
        locals_.append(value)
    return [*behind.get(-1, ()), *(each for k, let in enumerate(lets) for each in (let, *behind.get(k, ())))], locals_


def pieces_of(lets: Sequence[Let], results: Sequence[Expression]) -> tuple[Piece, ...]:
    """Cut assignments, before those that leave the fewest values to later pieces; the results come last.

    Args:
        lets: In an order in which each comes after those that it needs.
        results: What is computed from them at the end.
    """
    computed = [let for let in lets if not isinstance(let.value, Load)]
    uses = [{local.name for local in locals_in(let.value)} for let in computed]
    uses.append({local.name for local in locals_in(*results)})
    last = {name: place for place, names in enumerate(uses) for name in names}
    cuts = _cuts(computed, last)
    pieces = []
    for begin, end in zip([0, *cuts], [*cuts, len(computed)], strict=True):
        seen = set().union(*uses[begin : end if end in cuts else None])
        pieces.append(
            Piece(
                loads=tuple(let for let in lets if isinstance(let.value, Load) and let.name in seen),
                given=tuple(let for let in computed[:begin] if let.name in seen),
                lets=tuple(computed[begin:end]),
                kept=tuple(let for let in computed[begin:end] if last.get(let.name, 0) >= end and end in cuts),
            )
        )
    return tuple(pieces)


def _cuts(computed: Sequence[Let], last: dict[str, int]) -> list[int]:
    """Where pieces end, except for the last."""
    cuts, begin, done = list[int](), 0, 0
    works = [work(let.value) for let in computed]
    for place, own in enumerate(works):
        done += own
        if done > MOST_WORK and place > begin and sum(works[place:]) > MOST_WORK:
            window = range(begin + (place - begin) // 2 + 1, place + 1)
            cut = min(window, key=lambda at: (_crossing(computed, last, at), -at))
            cuts.append(cut)
            begin, done = cut, sum(works[cut : place + 1])
    return cuts


def _crossing(computed: Sequence[Let], last: dict[str, int], place: int) -> int:
    """How many values are computed before a place and needed behind it."""
    return sum(last.get(let.name, 0) >= place for let in computed[:place])

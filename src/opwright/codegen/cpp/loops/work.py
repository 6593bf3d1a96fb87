"""How long a processor computes at a point, beside what memory takes to store the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from opwright.codegen.cpp.expression import TRANSCENDENTAL, is_costly
from opwright.codegen.cpp.loops.rows import kept_between_passes
from opwright.ir.expressions.expression import Apply, Cast, Expression, children
from opwright.ir.phases import needed_lets, schedule
from opwright.ir.program import Kernel, Let, Store
from opwright.ir.rows import row_axes, varies, varying_locals

# In units of some 0.03 ns for an element.
_FUNCTION, _CONVERSION_OF_HALF, _IF_COMPLEX = 10, 4, 8
_WORK: Mapping[str, int] = {
    **dict.fromkeys(("divide", "reciprocal", "sqrt"), 6),
    **dict.fromkeys(("sigmoid", "tanh"), 14),
    **dict.fromkeys(("erf", "erfc", "twice_normal_cdf", "sin", "cos", "tan", "pow", "atan2", "remainder", "fmod"), 25),
}
_MOST_WORK = 5  # for each byte of the results; where there is more, memory waits for the processor


def quick_stores(kernel: Kernel) -> frozenset[int]:
    """The positions of those stores that are computed in less time than memory takes to store them.

    gate * sigmoid(gate) * value is; an error function is not, nor is what converts from half types and back. A pass
    that reduces too has none: it would add up in another order where its results go past the caches.
    """
    seen = replace(kernel, row_axes=max(kernel.row_axes, min(1, len(kernel.axes))))
    axes, varying = {axis.name for axis in row_axes(seen)}, varying_locals(seen)
    quick: set[int] = set()
    for lets, values, stores in _passes(kernel, varying):
        work = sum(_work(value, axes, varying) for value in (*(let.value for let in lets), *values))
        kept = [store for store in stores if store.reduction is None]
        if work <= _MOST_WORK * sum(store.value.dtype.bytes for store in kept):
            quick |= {position for position, store in enumerate(kernel.stores) if store in kept}
    return frozenset(quick)


def _passes(kernel: Kernel, varying: Set[str]) -> Iterator[tuple[Sequence[Let], Sequence[Expression], Sequence[Store]]]:
    """What each pass computes anew, all its values, and its stores."""
    if kernel.row_axes == 0:
        values = [store.value for store in kernel.stores]
        yield [let for let in kernel.lets if isinstance(let, Let)], values, kernel.stores
        return
    order, known = schedule(kernel), set[str]()
    kept = {let.name for let in kept_between_passes(kernel, order, varying, is_costly)}
    for phase in order.phases:
        lets = needed_lets(kernel, phase.values, varying, known)
        yield lets, phase.values, () if phase.reductions else phase.stores
        known |= {let.name for let in lets} & kept


def _work(value: Expression, axes: Set[str], varying: Set[str]) -> int:
    if not varies(value, axes, varying):
        return 0
    return _own_work(value) + sum(_work(child, axes, varying) for child in children(value))


def _own_work(node: Expression) -> int:
    match node:
        case Apply(function, _, dtype):
            own = _WORK.get(function, _FUNCTION if function in TRANSCENDENTAL else 1)
            return own * (_IF_COMPLEX if dtype.is_complex else 1)
        case Cast(operand, dtype):
            return _CONVERSION_OF_HALF if operand.dtype.is_half or dtype.is_half else 1
        case _:
            return 0

"""How a reshaped buffer lies: dimensions are matched in groups of equal size."""

from __future__ import annotations

from collections.abc import Sequence

from opwright.ir.expressions.integer import ONE, Integer, product, symbol
from opwright.sharding.rules.lies import At, Lies, unknown
from opwright.sharding.rules.sizes import Sizes, divided, mentions

_NO_GROUPS = "a reshape does not keep the axis in one dimension"


def reshaped(given: Lies, source: Sequence[Integer], target: Sequence[Integer], axis: str | None, sizes: Sizes) -> Lies:
    """How the result of a reshape lies.

    Args:
        given: How what is reshaped lies.
        source: Its shape.
        target: The new shape.
        axis: The symbol of the axis.
        sizes: The spelling of sizes.
    """
    if given.at is None or given.kind == "unknown":
        return given
    old, new = sizes.shape(source), sizes.shape(target)
    for first, last, start, end in _groups(old, new, sizes):
        if not first <= given.at.dimension < last:
            continue
        inner = sizes.spell(given.at.inner * product(old[given.at.dimension + 1 : last]))
        at = _found(new, range(start, end), inner, axis, sizes)
        return given.moved(at) if at else unknown(_NO_GROUPS)
    return unknown(_NO_GROUPS)


def _groups(old: Sequence[Integer], new: Sequence[Integer], sizes: Sizes) -> list[tuple[int, int, int, int]]:
    """Ranges of dimensions, of the old and of the new shape, that hold the same elements; as small as they can be."""
    groups, first, start = [], 0, 0
    while first < len(old) and start < len(new):
        found = next(
            (
                (last, end)
                for total in range(2, len(old) - first + len(new) - start + 1)
                for last in range(first + 1, min(len(old), first + total - 1) + 1)
                for end in [start + total - (last - first)]
                if start < end <= len(new)
                and sizes.spell(product(old[first:last])) == sizes.spell(product(new[start:end]))
            ),
            None,
        )
        if found is None:
            break
        groups.append((first, found[0], start, found[1]))
        first, start = found
    return groups


def _found(new: Sequence[Integer], dimensions: range, inner: Integer, axis: str | None, sizes: Sizes) -> At | None:
    step = ONE
    for dimension in reversed(dimensions):
        size = new[dimension]
        if mentions(size, axis):
            within = divided(inner, step)
            outer = None if within is None else divided(size, sizes.spell(symbol(str(axis)) * within))
            return None if within is None or outer is None else At(dimension, within, outer)
        step = sizes.spell(step * size)
    return None

"""Loads as views: `x[i1, i0 + n]` becomes `x[:, n:].mT`, which broadcasts against the axes (i0, i1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opwright.codegen.python.values.sizes import Sizes
from opwright.errors import NoKernel
from opwright.ir.expressions.affine import linear_coefficients
from opwright.ir.expressions.integer import ONE, ZERO, Integer, Quotient, product
from opwright.ir.program import Axis


@dataclass(frozen=True, slots=True)
class Aligned:
    """The text of a tensor that broadcasts against the axes of a kernel.

    Attributes:
        text: A name, perhaps with subscripts and methods behind.
        axes: The positions of the axes that it extends along.
        rank: How many of the last axes it has a dimension for.
    """

    text: str
    axes: frozenset[int]
    rank: int


@dataclass(frozen=True, slots=True)
class _Dimension:
    """What is read along a dimension: one element, or `subscript` split along axes, outermost first."""

    subscript: str
    axes: tuple[int, ...] = ()
    free: bool = False  # of size one: it broadcasts along an axis that the tensor does not have


def aligned_view(
    source: str, shape: Sequence[Integer], indices: Sequence[Integer], axes: Sequence[Axis], sizes: Sizes
) -> Aligned:
    """Write what a kernel over `axes` reads from a tensor as a view of it.

    Raises:
        NoKernel: If an index is not affine in the axes, or an axis occurs twice.
    """
    source, shape, indices = _flatten(source, shape, indices, sizes)
    read = [_dimension(size, index, axes, sizes) for size, index in zip(shape, indices, strict=True)]
    found = [axis for dimension in read for axis in dimension.axes]
    if len(set(found)) < len(found):
        raise NoKernel(f"{source} is read along its diagonal, which the function rung does not spell")
    if found == sorted(found) and all(len(dimension.axes) <= 1 for dimension in read):
        return _in_order(source, read, len(axes))
    kept = [dimension for dimension in read if dimension.axes]
    text = source + _subscript(["0" if dimension.free else dimension.subscript for dimension in read])
    text += _unflatten(kept, axes, sizes)
    text += _permute(found)
    return _in_order(text, [_Dimension(":", (axis,)) for axis in sorted(found)], len(axes))


def _flatten(
    source: str, shape: Sequence[Integer], indices: Sequence[Integer], sizes: Sizes
) -> tuple[str, list[Integer], list[Integer]]:
    """Merge dimensions that are indexed with the quotient and remainders of one index."""
    merged_shape: list[Integer] = []
    merged_indices: list[Integer] = []
    position = 0
    while position < len(shape):
        end = _end_of_quotients(shape, indices, position, sizes)
        if end > position + 1:
            source += f".flatten({len(merged_shape)}, {len(merged_shape) + end - position - 1})"
        merged_indices.append(_dividend(indices[position]) if end > position + 1 else indices[position])
        merged_shape.append(product(shape[position:end]))
        position = end
    return source, merged_shape, merged_indices


def _end_of_quotients(shape: Sequence[Integer], indices: Sequence[Integer], begin: int, sizes: Sizes) -> int:
    match indices[begin].terms:
        case (((Quotient(dividend, divisor),), 1),):
            pass
        case _:
            return begin + 1
    for end in range(begin + 2, len(shape) + 1):
        inner = [product(shape[position + 1 : end]) for position in range(begin, end)]
        expected = [(dividend // inner[n]) % shape[begin + n] for n in range(1, end - begin)]
        if sizes.same(inner[0], divisor) and all(map(sizes.same, indices[begin + 1 : end], expected)):
            return end
    return begin + 1


def _dividend(index: Integer) -> Integer:
    (((quotient,), _),) = index.terms
    assert isinstance(quotient, Quotient)
    return quotient.dividend


def _dimension(size: Integer, index: Integer, axes: Sequence[Axis], sizes: Sizes) -> _Dimension:
    position_of = {axis.name: position for position, axis in enumerate(axes)}
    affine = linear_coefficients(index, position_of)
    if affine is None:
        raise NoKernel(f"index {index} is not a multiple of an axis, which the function rung does not spell")
    steps, start = affine
    if not steps:
        return _Dimension(_from_end(start, size, sizes), free=size == ONE and start == ZERO)
    if len(steps) == 1:
        ((name, step),) = steps.items()
        subscript = _slice(start, step, axes[position_of[name]].extent, size, sizes)
        return _Dimension(subscript, (position_of[name],))
    split = _split({position_of[name]: step for name, step in steps.items()}, axes, sizes)
    if split is None:
        raise NoKernel(f"index {index} mixes axes in a way that the function rung does not spell")
    return _Dimension(_slice(start, ONE, product(axes[axis].extent for axis in split), size, sizes), split)


def _split(steps: dict[int, Integer], axes: Sequence[Axis], sizes: Sizes) -> tuple[int, ...] | None:
    """The axes that together cover one dimension without gaps, outermost first."""
    order: list[int] = []
    step = ONE
    for _ in steps:
        following = [axis for axis in steps if axis not in order and sizes.same(steps[axis], step)]
        if not following:
            return None
        order.insert(0, max(following))
        step = step * axes[order[0]].extent
    return tuple(order)


def _slice(start: Integer, step: Integer, extent: Integer, size: Integer, sizes: Sizes) -> str:
    constant = step.constant
    if constant is not None and constant < 1:
        raise NoKernel(f"a tensor is read backwards, with step {step}, which the function rung does not spell")
    stop = start + step * extent
    to_the_end = sizes.same(stop, size) or sizes.same(extent, (size - start + step - 1) // step)
    first = "" if start == ZERO else _from_end(start, size, sizes) if to_the_end else sizes.spell(start)
    last = "" if to_the_end else _from_end(stop, size, sizes)
    colon = " : " if " " in first + last else ":"
    return f"{first}{colon}{last}".strip() + ("" if step == ONE else f":{sizes.spell(step)}")


def _from_end(index: Integer, size: Integer, sizes: Sizes) -> str:
    before_end = (index - size).constant
    if index.constant is None and before_end is not None and before_end < 0:
        return str(before_end)
    return sizes.spell(index)


def _in_order(source: str, read: Sequence[_Dimension], rank: int) -> Aligned:
    """Subscript a tensor whose dimensions follow the axes; walk both from the right."""
    subscripts: list[str] = []
    axis = rank - 1
    for position in reversed(range(len(read))):
        dimension = read[position]
        if dimension.axes:
            subscripts += ["None"] * (axis - dimension.axes[0])
            subscripts.append(dimension.subscript)
            axis = dimension.axes[0] - 1
        elif dimension.free and axis > max((a for d in read[:position] for a in d.axes), default=-1):
            subscripts.append(":")
            axis -= 1
        else:
            subscripts.append(dimension.subscript)
    found = frozenset(axis for dimension in read for axis in dimension.axes)
    return Aligned(source + _subscript(subscripts[::-1]), found, rank - 1 - axis)


def _subscript(subscripts: list[str]) -> str:
    while subscripts and subscripts[-1] == ":":
        subscripts = subscripts[:-1]
    return f"[{', '.join(subscripts)}]" if subscripts else ""


def _unflatten(read: Sequence[_Dimension], axes: Sequence[Axis], sizes: Sizes) -> str:
    """From the right, so that positions on the left stay what they are."""
    return "".join(
        f".unflatten({position}, {sizes.tuple(tuple(axes[axis].extent for axis in read[position].axes))})"
        for position in reversed(range(len(read)))
        if len(read[position].axes) > 1
    )


def _permute(found: Sequence[int]) -> str:
    """Bring dimensions that extend along `found` into the order of the axes."""
    order = sorted(range(len(found)), key=lambda position: found[position])
    moved = [position for position, source in enumerate(order) if position != source]
    if not moved:
        return ""
    if len(moved) > 2:
        return f".permute({', '.join(map(str, order))})"
    return ".mT" if moved == [len(order) - 2, len(order) - 1] else f".transpose({moved[0]}, {moved[1]})"

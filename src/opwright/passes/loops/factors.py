"""How a reshape splits and merges dimensions: sizes as products of sizes on its other side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from opwright.ir.expressions.affine import linear_coefficients
from opwright.ir.expressions.integer import ONE, ZERO, Integer, Symbol, product, substitute, symbol

Sizes = tuple[Integer, ...]
Factors = tuple[Integer, Sizes]
Splits = Mapping[Integer, Sizes]


def factors(left: Sequence[Integer], right: Sequence[Integer], positive: Set[str]) -> tuple[Factors, ...] | None:
    """The sizes of one shape that are products of sizes of the other one, where both have as many elements.

    (n, 8, c // 8, h*w) and (n, c, h, w): c is 8 times c // 8, and h*w is h times w. Dimensions are matched from both
    ends; those left over have as many elements on both sides, because no size that was matched is zero.

    Args:
        left: One shape.
        right: The other shape.
        positive: The symbols that are never zero.

    Returns:
        Each such size, with its factors; None if several dimensions become several others.
    """
    shapes = (without_ones(left), without_ones(right))
    from_left, shapes = _matched(*shapes)
    from_right, (rest, other) = _matched(shapes[0][::-1], shapes[1][::-1])
    found = [*from_left, *((size, parts[::-1]) for size, parts in from_right)]
    if rest or other:
        if min(len(rest), len(other)) != 1 or not _are_positive(left, right, rest, other, positive):
            return None
        found.append((rest[0], other[::-1]) if len(rest) == 1 else (other[0], rest[::-1]))
    return tuple((size, parts) for size, parts in found if len(parts) > 1)


def without_ones(shape: Iterable[Integer]) -> Sizes:
    """A shape without its dimensions of one element."""
    return tuple(size for size in shape if size != ONE)


def _matched(left: Sizes, right: Sizes) -> tuple[list[Factors], tuple[Sizes, Sizes]]:
    """Match dimensions from the left: equal ones, and one with several; also what is left over."""
    found: list[Factors] = []
    while left and right:
        if (end := _prefix(right, left[0])) is not None:
            found.append((left[0], right[:end]))
            left, right = left[1:], right[end:]
        elif (end := _prefix(left, right[0])) is not None:
            found.append((right[0], left[:end]))
            left, right = left[end:], right[1:]
        else:
            break
    return found, (left, right)


def _prefix(shape: Sizes, size: Integer) -> int | None:
    """How many first dimensions make up a size."""
    return next((end for end in range(1, len(shape) + 1) if product(shape[:end]) == size), None)


def _are_positive(
    left: Sequence[Integer], right: Sequence[Integer], rest: Sizes, other: Sizes, known: Set[str]
) -> bool:
    """Whether the sizes that were matched, all those that are not left over, are positive."""
    matched = [size for shape, kept in ((left, rest), (right, other)) for size in without_ones(shape)]
    for size in (*rest, *other):
        matched.remove(size)
    return all(_is_positive(size, known) for size in matched)


def _is_positive(size: Integer, known: Set[str]) -> bool:
    return bool(size.terms) and all(
        coefficient > 0 and all(isinstance(atom, Symbol) and atom.name in known for atom in monomial)
        for monomial, coefficient in size.terms
    )


def expanded(size: Integer, splits: Splits) -> Sizes:
    """A size as the product of its factors, and of theirs."""
    if size not in splits:
        return (size,)
    return tuple(factor for part in splits[size] for factor in expanded(part, splits))


def digits(index: Integer, sizes: Sizes, extents: Mapping[str, Integer]) -> Sizes | None:
    """The indices along the factors of a dimension, the reverse of `flat`; None if the axes are split otherwise.

    Args:
        index: The index along the whole dimension.
        sizes: The factors.
        extents: The axes that indices are in terms of.
    """
    if len(sizes) == 1:
        return (index,)
    index = substitute(index, {name: ZERO for name, extent in extents.items() if extent == ONE})
    split = linear_coefficients(index, extents)
    if split is None or split[1] != ZERO:
        return None
    left = dict(split[0])
    found = []
    for position, size in enumerate(sizes):
        weight = product(sizes[position + 1 :])
        names = [name for name, coefficient in left.items() if coefficient == weight and extents[name] == size]
        if len(names) > 1:
            return None
        found.append(symbol(names[0]) if names else ZERO)
        for name in names:
            del left[name]
    return None if left else tuple(found)

"""Dimensions that become one another in a view hold as many elements, and no pair of them can be cut again."""

from __future__ import annotations

import random
from math import prod

import pytest

from opwright.tracing.torch_hooks.layouts.groups_of_dimensions import groups_of_dimensions


@pytest.mark.parametrize(
    ("left", "right", "sizes"),
    [
        ([2, 21, 96], [2, 3, 7, 96], [([2], [2]), ([21], [3, 7]), ([96], [96])]),
        ([4, 6], [6, 4], [([4, 6], [6, 4])]),
        ([7], [1, 7, 1], [([7], [1, 7, 1])]),
        ([1, 7], [7], [([1, 7], [7])]),
        ([1, 6, 1, 1], [2, 3], [([1, 6, 1, 1], [2, 3])]),
        ([], [1, 1], [([], [1, 1])]),
        ([], [], [([], [])]),
        ([2, 3], [7], None),
        ([0, 3], [3, 0], None),
    ],
)
def test_dimensions_are_paired(left, right, sizes):
    groups = groups_of_dimensions(left, right)
    assert (groups if groups is None else [(left[ours], right[theirs]) for ours, theirs in groups]) == sizes


def test_random_pairs_are_complete_and_as_short_as_can_be():
    draw = random.Random(3)
    for _ in range(300):
        factors = [draw.choice((1, 2, 3, 5)) for _ in range(draw.randint(0, 6))]
        left, right = _joined(factors, draw), _joined(factors, draw)
        groups = groups_of_dimensions(left, right)
        assert [size for ours, _ in groups for size in left[ours]] == left
        assert [size for _, theirs in groups for size in right[theirs]] == right
        for ours, theirs in groups:
            assert prod(left[ours]) == prod(right[theirs])
        for ours, theirs in groups[:-1]:
            inner = {prod(left[ours][:end]) for end in range(1, len(left[ours]))}
            assert not inner & {prod(right[theirs][:end]) for end in range(1, len(right[theirs]))}


def _joined(factors: list[int], draw: random.Random) -> list[int]:
    """A shape with as many elements: neighbouring factors are multiplied, or not."""
    shape = [*factors]
    while len(shape) > 1 and draw.random() < 0.6:
        place = draw.randrange(len(shape) - 1)
        shape[place : place + 2] = [shape[place] * shape[place + 1]]
    return shape

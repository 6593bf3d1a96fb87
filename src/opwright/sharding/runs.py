"""Which places of a dimension a process has, as runs, where several dimensions of a mesh cut the same one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from opwright.sharding.parts import part_size

Runs = tuple[range, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """What one dimension of a mesh does to a dimension of a tensor: each of `blocks` is spread over `count` processes.

    `Shard` has one block, `_StridedShard` as many as its split factor.
    """

    blocks: int
    count: int


def runs_of(size: int, cuts: Sequence[Cut], coordinate: Sequence[int]) -> Runs:
    """The places of a process, as PyTorch reads placements: from the first cut to the last.

    Args:
        size: Of the whole dimension.
        cuts: By the dimensions of the mesh that cut it.
        coordinate: The place of the process in each of these.
    """
    runs: Runs = (range(size),)
    for cut, index in zip(cuts, coordinate, strict=True):
        blocks = [_part(runs, cut.blocks, block) for block in range(cut.blocks)]
        runs = _joined([run for block in blocks for run in _part(block, cut.count, index)])
    return runs


def are_told(size: int, cuts: Sequence[Cut]) -> bool:
    """Whether placements say which places each process has.

    FSDP2 cuts what tensor parallelism has cut, and calls it `(_StridedShard(0, 2), Shard(0))`, which PyTorch reads the
    other way around. For even parts that is the same, for some uneven ones it is not: of 7 rows on a mesh of 3 x 2,
    process (2, 1) has row 6, but process (2, 0) should.
    """
    later = [level for level, cut in enumerate(cuts) if cut.blocks > 1]
    if len(cuts) < 2 or not later or size % prod(cut.count for cut in cuts) == 0:
        return True
    order = [level for level, cut in enumerate(cuts) if cut.blocks == 1] + later[::-1]
    made = [Cut(1, cuts[level].count) for level in order]
    return all(
        runs_of(size, cuts, place) == runs_of(size, made, [place[level] for level in order])
        for place in product(*[range(cut.count) for cut in cuts])
    )


def _part(runs: Sequence[range], count: int, index: int) -> list[range]:
    """One of the parts of runs that lie one after another."""
    size = sum(map(len, runs))
    start = -(-size // count) * index
    stop = start + part_size(size, count, index)
    found, before = [], 0
    for run in runs:
        if own := run[max(0, start - before) : max(0, stop - before)]:
            found.append(own)
        before += len(run)
    return found


def _joined(runs: Sequence[range]) -> Runs:
    starts = [0, *[place for place, (one, two) in enumerate(pairwise(runs), 1) if one.stop != two.start], len(runs)]
    return tuple(range(runs[a].start, runs[b - 1].stop) for a, b in pairwise(starts) if b > a)

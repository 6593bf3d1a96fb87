"""Which of several proven rules is chosen."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from opwright.sharding.choose import Given, choose
from opwright.sharding.rule import REPLICATE, Rule

WHOLE = Rule(REPLICATE, (Replicate(),), (Replicate(),), (0,))


def rule(given: Placement, made: Placement, *, even: bool = False) -> Rule:
    return Rule("rows", (given,), (made,), (0,), even)


@pytest.mark.parametrize(("rows", "is_spread"), [(8, True), (6, False), (3, False)])
def test_a_rule_of_even_parts_is_for_even_parts(rows: int, is_spread: bool) -> None:
    given = Given((rows, 5), rows * 20, (Shard(0),))
    choice = choose([WHOLE, rule(Shard(0), Shard(0), even=True)], [given], [rows * 20], [4])
    assert choice is not None
    assert choice.inputs(0) == ((Shard(0) if is_spread else Replicate()),)


@pytest.mark.parametrize(("rows", "is_spread"), [(8, True), (3, False)])
def test_a_whole_result_is_not_made_of_an_empty_part(rows: int, is_spread: bool) -> None:
    given = Given((rows, 5), rows * 20, (Shard(0),))
    choice = choose([WHOLE, rule(Shard(0), Replicate())], [given], [rows * 20], [4])
    assert choice is not None
    assert choice.inputs(0) == ((Shard(0) if is_spread else Replicate()),)


def test_addends_of_one_result_are_of_one_kind() -> None:
    largest, sums = (rule(Replicate(), Partial(kind)) for kind in ("max", "sum"))
    given = Given((8, 5), 160, (Replicate(), Replicate()))
    assert choose([largest, sums], [given], [160], [2, 2]) is not None
    for outer, inner in ((largest, sums), (sums, largest)):
        choice = choose([outer, inner], [given], [160], [2, 2])
        assert choice is not None
        assert len({str(made) for made in choice.outputs(0)}) == 1


@pytest.mark.parametrize(("columns", "is_split"), [(40, True), (2, False)])
def test_a_row_is_gathered_or_reduced_by_what_moves_fewer_bytes(columns: int, is_split: bool) -> None:
    statistics = Mock(collectives=1)
    split = Rule("columns", (Shard(1),), (Shard(1),), (0,), split=statistics)
    given = Given((6, columns), 6 * columns * 4, (Shard(1),))
    choice = choose([WHOLE, split], [given], [given.bytes], [4], [0, 6 * 4])
    assert choice is not None
    assert choice.inputs(0) == ((Shard(1) if is_split else Replicate()),)

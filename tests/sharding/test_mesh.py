"""Calls with DTensors on local meshes: results, gradients and their gradients, collectives, and wrong calls."""

from __future__ import annotations

import pytest
import torch

import opwright
from tests.sharding import functions
from tests.sharding.processes import on_mesh


@pytest.mark.seconds(120)
def test_two_processes() -> None:
    opwright.operator(functions.spread_gate)(torch.ones(2, 2), torch.ones(2, 2))  # builds what all kernels need
    assert on_mesh("tests.sharding.on_two", "judge", 2, seconds=100) == []


@pytest.mark.nightly
@pytest.mark.seconds(1200)
@pytest.mark.parametrize("which", ["judge", "judge_grid"])
def test_operators_on_four_processes(which: str) -> None:
    assert on_mesh("tests.sharding.on_four", which, 4, seconds=1100) == []


@pytest.mark.nightly
@pytest.mark.seconds(600)
def test_traps() -> None:
    assert on_mesh("tests.sharding.on_traps", "judge", 2, seconds=500) == []


@pytest.mark.nightly
@pytest.mark.seconds(300)
def test_no_more_collectives_than_an_expert_would_use() -> None:
    assert on_mesh("tests.sharding.on_two", "judge_expert", 2, seconds=250) == []


@pytest.mark.nightly
@pytest.mark.seconds(600)
def test_a_block_is_trained_as_in_one_process() -> None:
    assert on_mesh("tests.sharding.on_block", "judge", 2, seconds=500) == []


@pytest.mark.nightly
@pytest.mark.seconds(600)
@pytest.mark.parametrize("inner", [16, 13])
@pytest.mark.parametrize("which", ["judge_grid", "judge_grid_optimizer", "judge_parameters"])
def test_a_block_is_trained_on_a_grid_as_in_one_process(which: str, inner: int) -> None:
    assert on_mesh("tests.sharding.on_block", which, 4, inner, seconds=500) == []


@pytest.mark.nightly
@pytest.mark.seconds(300)
@pytest.mark.parametrize(
    "which", ["optimizer", "saving", "checkpointing", "callables", "transforms", "parallel", "pipeline"]
)
def test_what_training_needs(which: str) -> None:
    assert on_mesh("tests.sharding.on_training", "judge", 2, which, seconds=250) == []


@pytest.mark.nightly
@pytest.mark.seconds(300)
def test_random_numbers_are_those_of_pytorch() -> None:
    assert on_mesh("tests.sharding.on_random", "judge", 2, seconds=250) == []


@pytest.mark.nightly
@pytest.mark.seconds(600)
@pytest.mark.parametrize("which", ["cases", "outside", "plain"])
def test_compiled_calls(which: str) -> None:
    assert on_mesh("tests.sharding.on_compiled", "judge", 2, which, seconds=500) == []


@pytest.mark.nightly
@pytest.mark.seconds(300)
@pytest.mark.parametrize("which", ["fsdp", "placements", "rounding", "meshes"])
def test_optimizers_update_parts(which: str) -> None:
    assert on_mesh("tests.sharding.on_optimizers", "judge", 2, which, seconds=250) == []


@pytest.mark.nightly
@pytest.mark.seconds(120)
def test_tensors_of_other_meshes_end_in_a_sentence() -> None:
    assert on_mesh("tests.sharding.on_faults", "judge_meshes", 2, seconds=100) == []


@pytest.mark.nightly
@pytest.mark.seconds(300)
@pytest.mark.parametrize("how", ["exits", "stops"])
def test_the_others_hear_of_a_process_that_is_lost(how: str) -> None:
    faults = on_mesh("tests.sharding.on_faults", "judge_lost", 2, how, seconds=250, collective_seconds=30)
    assert faults == ["process 1 told nothing"]

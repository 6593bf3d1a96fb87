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

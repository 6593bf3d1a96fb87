"""Operators whose rules are checked on a mesh, and what its processes do where a rule is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import Shard

import opwright
from opwright.samples import Sample
from opwright.sharding import check, plan
from opwright.sharding.derive import Derived
from opwright.sharding.rule import Rule


@opwright.operator(samples=opwright.shapes("6 4", "4"))
def spread_scaled_rows(x: torch.Tensor, weight: torch.Tensor, *, eps: float = 1e-3) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


@opwright.operator(samples=opwright.shapes("6 4"))
def spread_softmax_of_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def judge_a_wrong_rule(count: int, operator: Any, samples: Sequence[Sample]) -> list[str]:
    """Judge a rule that says that rows may be cut."""
    wrong = Derived((Rule("rows", (Shard(1),), (Shard(1),), (0,)),), ())
    check.rules_for = plan.rules_for = lambda operator, specs: wrong
    return check.judge_rules(count, operator, samples)

"""Sizes at which a view of a permuted tensor becomes a copy, or a copy a view: these are guarded against.

`x.reshape(2, -1)` of a permuted `x` of sizes (4, 6) merges and splits both dimensions, so eager copies it, row by row.
Of sizes (2, 5) it changes nothing, and eager's result lies as `x` does. A trace does not see that: its arguments are
contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, product
from math import prod
from operator import mul
from typing import Any

import torch
from torch.fx import Graph as FxGraph

from opwright.tracing.torch_hooks.layouts.groups_of_dimensions import groups_of_dimensions, hinted

_VIEWS = {torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default}


def guard_regrouping(fx: FxGraph) -> None:
    """Set guards that each view of a trace merges and splits the same dimensions in every call."""
    for node in fx.nodes:
        if node.target in _VIEWS:
            _guard(node.args[0].meta["val"].shape, node.meta["val"].shape)


def _guard(before: Sequence[Any], after: Sequence[Any]) -> None:
    for ours, theirs in groups_of_dimensions([*map(hinted, before)], [*map(hinted, after)]) or ():
        merged, split = before[ours], after[theirs]
        bool(prod(merged) == prod(split))  # asking sets the guard that they are equal
        for left, right in product(accumulate(merged[:-1], mul), accumulate(split[:-1], mul)):
            bool(left == right)  # and here, that they are not

"""The autograd node of a rung that is written by hand.

Its backward pass is the author's. Where somebody differentiates or maps that pass, and for gradients that the author
left out, it is the derived operator of the gradients instead: nothing is silently zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch.autograd import Function

from opwright.binding.derived_node import GradientsOf, Step, gradients, keep
from opwright.binding.environment import is_transformed
from opwright.handwritten.passes import Passes, Recorded


class Written(Step):
    """One call of a rung that is written by hand.

    Args:
        passes: The author's.
        gradients_of: The derived operators of the gradients.
    """

    def __init__(self, passes: Passes, gradients_of: GradientsOf) -> None:
        super().__init__(gradients_of)
        self.passes = passes
        self.state: Any = None


class _Node(Function):
    @staticmethod
    def forward(ctx: Any, step: Written, *args: Any) -> Any:
        made = step.passes.forward(args, recording=True)
        step.state = made.state
        step.leaves = [_stand_in(output.dtype) for output in made.outputs]
        keep(ctx, step, args, made.outputs, made.kept)
        return made.outputs

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor | None) -> Any:
        if torch.is_grad_enabled() or is_transformed():
            return gradients(ctx, incoming)
        wanted = tuple(position - 1 for position, needed in enumerate(ctx.needs_input_grad) if needed)
        if not wanted or all(gradient is None for gradient in incoming):
            return (None,) * len(ctx.needs_input_grad)
        given = ctx.step.passes.backward(_recorded(ctx, incoming, wanted))
        missing = tuple(position for position in wanted if position not in given)
        found = list(gradients(ctx, incoming, wanted=missing) if missing else (None,) * len(ctx.needs_input_grad))
        for position in wanted:
            if position in given:
                found[1 + position] = given[position]
        return tuple(found)


record: Callable[..., tuple[torch.Tensor, ...]] = super(Function, _Node).apply
"""`record(step, *arguments)`: the results, with a node behind them."""


def _recorded(ctx: Any, incoming: Sequence[torch.Tensor | None], wanted: tuple[int, ...]) -> Recorded:
    saved = list(ctx.saved_tensors)
    args = [saved.pop(0) if tensor else given for tensor, given in zip(ctx.tensors, ctx.rest, strict=True)]
    return Recorded(args, ctx.described, saved, ctx.step.state, incoming, wanted)


@cache
def _stand_in(dtype: torch.dtype) -> torch.Tensor:
    """What a node knows of a result: holding the result itself would be holding the node."""
    return torch.empty(0, dtype=dtype)

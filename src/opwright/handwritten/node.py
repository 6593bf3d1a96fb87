"""The autograd node of a handwritten rung.

Its backward pass is the author's. Where that pass is itself differentiated or under `vmap`, and for gradients that the
author left out, the derived operator of the gradients runs instead, so that no gradient is silently zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import Function

from opwright.binding.autograd.derived_node import GradientsOf, Made, described, gradients, keep, kept
from opwright.binding.autograd.node import none_flows
from opwright.binding.environment import is_transformed
from opwright.handwritten.expected import Tensors
from opwright.handwritten.passes import Passes, Recorded


@dataclass(slots=True)
class Written:
    """What a call of a handwritten rung needs.

    Attributes:
        passes: The author's.
        expected: What the reference returns for the arguments of the call.
        gradients_of: The derived operators of the gradients.
    """

    passes: Passes
    expected: Tensors
    gradients_of: GradientsOf


class _Node(Function):
    @staticmethod
    def forward(ctx: Any, written: Written, *args: Any) -> Any:
        made = written.passes.forward(args, written.expected, recording=True)
        ctx.passes, ctx.state = written.passes, made.state
        outputs = tuple(made.outputs)
        return keep(ctx, Made(written.gradients_of, range(len(outputs)), args, outputs, more=made.kept))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        if torch.is_grad_enabled() or is_transformed():
            return gradients(ctx, cotangents)
        needed = ctx.needs_input_grad
        wanted = tuple([position - 1 for position, is_needed in enumerate(needed) if is_needed])
        if not wanted or none_flows(cotangents):
            return (None,) * len(needed)
        saved = ctx.saved_tensors  # which can be asked for once under checkpointing
        given = ctx.passes.backward(Recorded(*kept(ctx, saved), described(ctx), ctx.state, cotangents, wanted))
        missing = tuple([position for position in wanted if position not in given])
        found = list(gradients(ctx, cotangents, wanted=missing, saved=saved) if missing else (None,) * len(needed))
        for position in wanted:
            if position in given:
                found[1 + position] = given[position]
        return tuple(found)


record: Callable[..., tuple[torch.Tensor, ...]] = super(Function, _Node).apply
"""`record(written, *arguments)`: the results, with a node behind them."""

"""Operators as they are written by hand, to compare with: an `autograd.Function` around two functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from opwright.api.operator import Operator
from opwright.binding.variants.launcher import load_launcher
from opwright.settings import Settings
from opwright.toolchain.build import build

Function = Callable[..., Any]


def function_around(forward_pass: Function, backward_pass: Function) -> Function:
    """`forward_pass(*inputs)`, and `backward_pass(*inputs, *cotangents)`."""

    class Bare(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: torch.Tensor) -> Any:
            ctx.save_for_backward(*inputs)
            return forward_pass(*inputs)

        @staticmethod
        def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
            return backward_pass(*ctx.saved_tensors, *cotangents)

    return Bare.apply  # type: ignore[no-any-return]


def same_kernels(operator: Operator) -> Function:
    """A function around the very kernels of an operator of two inputs that keeps both and nothing else."""
    plan = operator.derivation().plan
    assert plan.saved.arguments == (0, 1)
    assert not plan.saved.sizes
    paths = build(plan.sources, Settings.from_environment())
    return function_around(*map(load_launcher, paths, (source.name for source in plan.sources)))

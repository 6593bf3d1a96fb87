"""Reductions of columns in kernels of their own: no kernel with rows has a reducing store, and the meaning stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.ir.meaning.interpreter import interpret
from opwright.ir.printer import print_program
from opwright.ir.program import Kernel, Program
from opwright.ir.verifier import verify
from opwright.passes.loops.separate_columns import separate_columns
from opwright.passes.order import optimize
from tests.derived import lowered_joint, specs_of


def layer_norm(x: Tensor, weight: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight)


def scaled_softmax(x: Tensor, weight: Tensor) -> Tensor:
    return torch.softmax(x * weight, -1)


def normalized(x: Tensor, weight: Tensor) -> Tensor:
    return (x / x.norm(dim=-1, keepdim=True) * weight).exp()


REFERENCES = (layer_norm, scaled_softmax, normalized)


def mixed_kernels(program: Program) -> list[Kernel]:
    kernels = [step for step in program.steps if isinstance(step, Kernel)]
    return [kernel for kernel in kernels if kernel.row_axes and any(store.reduction for store in kernel.stores)]


def program_of(reference: Callable[..., Tensor]) -> Program:
    arguments = (torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True))
    return optimize(lowered_joint(reference, specs_of(("x", "weight"), arguments))[1])


@pytest.mark.parametrize("reference", REFERENCES)
def test_they_are_apart(reference: Callable[..., Tensor]) -> None:
    program = program_of(reference)
    separated = separate_columns(program)
    verify(separated)
    assert mixed_kernels(program)
    assert not mixed_kernels(separated)
    assert print_program(separate_columns(separated)) == print_program(separated)


@pytest.mark.parametrize("reference", REFERENCES)
def test_the_meaning_stays(reference: Callable[..., Tensor]) -> None:
    program = program_of(reference)
    generator = np.random.default_rng(1)
    given = [
        generator.normal(size=(30, 4) if len(buffer.shape) == 2 else 4).astype(np.float32) for buffer in program.inputs
    ]
    for left, right in zip(interpret(program, given), interpret(separate_columns(program), given), strict=True):
        np.testing.assert_array_equal(left, right)

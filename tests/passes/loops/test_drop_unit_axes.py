"""Axes of one element are left out of kernels, and the meaning stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from opwright.ir.expressions.integer import ONE
from opwright.ir.meaning.interpreter import interpret
from opwright.ir.printer import print_program
from opwright.ir.program import Kernel, Program
from opwright.ir.verifier import verify
from opwright.passes.loops.drop_unit_axes import drop_unit_axes
from opwright.passes.order import Written, finish, optimize
from tests.derived import lowered_joint, specs_of


def column(x: Tensor, y: Tensor) -> Tensor:
    return torch.tanh(x) + y[:, :1]


def softmax_of_one(x: Tensor, y: Tensor) -> Tensor:
    return torch.softmax(x, -1) * y


def everything(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum()


def program_of(reference: Callable[..., Tensor]) -> Program:
    arguments = (torch.randn(3, 1, requires_grad=True), torch.randn(3, 4, requires_grad=True))
    return optimize(lowered_joint(reference, specs_of(("x", "y"), arguments))[1])


@pytest.mark.parametrize("reference", [column, softmax_of_one, everything])
def test_they_are_left_out_and_the_meaning_stays(reference: Callable[..., Tensor]) -> None:
    program = program_of(reference)
    dropped = drop_unit_axes(program)
    verify(dropped)
    generator = np.random.default_rng(1)
    sizes = {"x": (5, 1), "y": (5, 6)}
    shape_of_output = tuple(reference(torch.zeros(5, 1), torch.zeros(5, 6)).shape)
    given = [
        generator.normal(size=sizes.get(buffer.name, shape_of_output)).astype(np.float32) for buffer in program.inputs
    ]
    for left, right in zip(interpret(program, given), interpret(dropped, given), strict=True):
        np.testing.assert_array_equal(left, right)


def test_only_rows_keep_an_axis_of_one_element() -> None:
    kernels = [step for step in drop_unit_axes(program_of(column)).steps if isinstance(step, Kernel)]
    assert any(
        ONE in (axis.extent for axis in step.axes) for step in program_of(column).steps if isinstance(step, Kernel)
    )
    assert not [axis for kernel in kernels if not kernel.row_axes for axis in kernel.axes if axis.extent == ONE]
    assert print_program(drop_unit_axes(drop_unit_axes(program_of(column)))) == print_program(
        drop_unit_axes(program_of(column))
    )


@pytest.mark.parametrize("target", ["cpp", "cuda"])
def test_no_backend_has_rows_of_one_element_among_many(target: Written) -> None:
    kernels = [step for step in finish(program_of(softmax_of_one), target).steps if isinstance(step, Kernel)]
    assert kernels
    assert all(axis.extent != ONE for kernel in kernels for axis in kernel.axes)

"""Sums across memory in two kernels, and what few axes decide in one before; the meaning stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.ir.contents import kernels
from opwright.ir.meaning.interpreter import interpret
from opwright.ir.program import Kernel, Program, Reduce
from opwright.ir.verifier import verify
from opwright.passes.loops.columns_first import columns_first
from opwright.passes.loops.drop_unit_axes import drop_unit_axes
from opwright.passes.loops.uniform_first import uniform_first
from opwright.passes.order import optimize
from tests.passes.programs import lowered_from, steps, text


def group_sums(x: Tensor) -> Tensor:
    n, height, width, channels = x.shape
    return x.view(n, height, width, 4, channels // 4).permute(0, 3, 4, 1, 2).square().sum((2, 3, 4)) * 2


def instance_sums(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2).exp().sum((2, 3)) + 1


def group_normalized(x: Tensor) -> Tensor:
    y = x.permute(0, 3, 1, 2)
    return functional.group_norm(y, 4).permute(0, 2, 3, 1)


def rows(x: Tensor) -> Tensor:
    return x.sum(-1)


def scaled(x: Tensor, y: Tensor) -> Tensor:
    return x * (1 / y)


IMAGES = torch.randn(2, 3, 5, 8)


def reductions(program: Program) -> list[Kernel]:
    return [kernel for kernel in kernels(program) if any(isinstance(let, Reduce) for let in kernel.lets)]


@pytest.mark.parametrize("function", [group_sums, instance_sums, group_normalized, rows])
def test_the_meaning_stays(function: Callable[[Tensor], Tensor]) -> None:
    program = drop_unit_axes(optimize(lowered_from(function, IMAGES), "cpp"))
    given = [IMAGES.double().numpy().astype(np.float32)]
    for changed in (columns_first(program), uniform_first(columns_first(program))):
        verify(changed)
        for left, right in zip(interpret(program, given), interpret(changed, given), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-6)
        np.testing.assert_allclose(interpret(changed, given)[0], function(IMAGES).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [group_sums, instance_sums, group_normalized])
def test_sums_across_memory_go_along_it(function: Callable[[Tensor], Tensor]) -> None:
    program = optimize(lowered_from(function, IMAGES), "cpp")
    changed = columns_first(program)
    columns = [kernel for kernel in kernels(changed) if any(store.reduction for store in kernel.stores)]
    assert len(columns) == len(reductions(program)) > 0
    assert all(kernel.row_axes == 0 for kernel in columns)


def test_sums_along_memory_stay() -> None:
    program = optimize(lowered_from(rows, IMAGES), "cpp")
    assert columns_first(program) == program


def test_a_long_computation_of_few_axes_is_done_once() -> None:
    program = optimize(lowered_from(scaled, torch.randn(4, 5), torch.randn(5)), "cpp")
    assert steps(uniform_first(program)) == text("""
        kernel output_0_each over i1 < x_size_1
          new output_0_each: float32[x_size_1]
          let y = y[i1]
          output_0_each[i1] = 1 / y
        kernel output_0 over i0 < x_size_0, i1 < x_size_1
          new output_0: float32[x_size_0, x_size_1]
          let output_0_each_of_point = output_0_each[i1]
          let x = x[i0, i1]
          output_0[i0, i1] = x * output_0_each_of_point
        """)


def test_what_has_all_axes_or_is_short_stays() -> None:
    for other in (torch.randn(4, 5), torch.randn(4, 1)):
        program = optimize(lowered_from(scaled, torch.randn(4, 5), other), "cpp")
        assert uniform_first(program) == program
    program = optimize(lowered_from(lambda x, y: x * (y + 1), torch.randn(4, 5), torch.randn(5)), "cpp")
    assert uniform_first(program) == program

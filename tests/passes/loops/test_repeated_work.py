from __future__ import annotations

import torch

from opwright.ir.program import Kernel
from opwright.passes.loops.fuse import fuse
from opwright.passes.loops.repeated_work import MOST_REPEATED, work
from opwright.passes.order import optimize
from tests.passes.programs import lowered_from

STEPS = 12


def recurrence(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    state, hidden = x, x
    for _ in range(STEPS):
        gates = hidden @ y
        state = state + torch.tanh(gates) * torch.sigmoid(gates)
        hidden = torch.tanh(state)
    return hidden


def wide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Values for all pairs, which are larger than what they are computed from, for two reductions of other axes."""
    pairs = x.unsqueeze(-1) - y
    for _ in range(STEPS):
        pairs = torch.sin(pairs)
    return pairs.sum(0).amax() * pairs.sum(-1).amax()


def kernels(program):
    return [step for step in program.steps if isinstance(step, Kernel)]


def most_work(program):
    return max(sum(work(each.value) for each in (*kernel.lets, *kernel.stores)) for kernel in kernels(program))


def test_a_state_is_not_computed_from_the_beginning_again():
    program = fuse(lowered_from(recurrence, torch.zeros(6, 4), torch.zeros(4, 4)))
    assert most_work(program) <= MOST_REPEATED + 8 * 3 + 2
    assert len(kernels(program)) == STEPS


def test_what_is_larger_than_its_operands_is_not_stored():
    program = lowered_from(wide, torch.zeros(6, 5), torch.zeros(4))
    sizes = [len(target.shape) for kernel in kernels(fuse(program)) for target in kernel.targets]
    assert max(sizes) < 3


def test_little_work_is_done_twice():
    program = optimize(
        lowered_from(lambda x, y: ((x * 2).sum(0), (x * 2 + 1) @ y), torch.zeros(6, 4), torch.zeros(4, 4))
    )
    assert len([target for kernel in kernels(program) for target in kernel.targets]) == 2


def rotated(x: torch.Tensor) -> torch.Tensor:
    length, width = x.shape[-2:]
    angles = torch.arange(length, dtype=x.dtype)[:, None] * torch.arange(width, dtype=x.dtype)
    return x * angles.cos()


def by_rows(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * torch.tanh(y)[:, None]


def scaled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * (y * 2 + 1)


def test_a_table_is_computed_once():
    program = fuse(lowered_from(rotated, torch.zeros(2, 3, 5, 4)))
    table, product = kernels(program)
    assert [len(kernel.axes) for kernel in (table, product)] == [2, 4]
    assert most_work(program) < 16


def test_what_is_uniform_over_the_innermost_loop_is_no_table():
    assert len(kernels(fuse(lowered_from(by_rows, torch.zeros(6, 4), torch.zeros(6))))) == 1


def test_a_table_that_takes_little_work_is_not_stored():
    assert len(kernels(fuse(lowered_from(scaled, torch.zeros(6, 4), torch.zeros(4))))) == 1

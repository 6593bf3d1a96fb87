from __future__ import annotations

from dataclasses import replace

import torch

from opwright.ir.expressions.expression import apply
from opwright.ir.program import Call, Kernel
from opwright.passes.scalars.prune import prune
from tests.ir.programs import gated, joined
from tests.passes.kernels import X, kernel, local, statements
from tests.passes.programs import lowered_from, steps, text


def test_lets_that_nothing_uses() -> None:
    lets = {"a": apply("exp", X), "b": apply("sin", local("a")), "c": apply("cos", local("a"))}
    program = kernel(apply("tanh", local("c")), lets)
    assert statements(prune(program)) == ["let a = exp(x[i0, i1])", "let c = cos(a)", "y[i0, i1] = tanh(c)"]


def test_steps_that_nothing_reads() -> None:
    program = lowered_from(lambda x, y: (torch.exp(x), torch.sin(x) @ y), torch.zeros(4, 6), torch.zeros(6, 4))
    assert steps(prune(replace(program, outputs=program.outputs[:1]))) == text("""
        kernel output_0 over i0 < x_size_0, i1 < x_size_1
          new output_0: float32[x_size_0, x_size_1]
          output_0[i0, i1] = exp(x[i0, i1])
        """)


def test_what_draws_random_numbers_or_checks_values_stays() -> None:
    def drawing(x: torch.Tensor) -> torch.Tensor:
        torch.rand_like(x)
        torch.linalg.inv(x)
        return x + 1

    program = prune(lowered_from(drawing, torch.eye(3)))
    calls = [step.function for step in program.steps if isinstance(step, Call)]
    assert calls == ["aten::rand_like", "aten::linalg_inv_ex", "aten::_linalg_check_errors"]


def test_every_piece_of_a_buffer_stays() -> None:
    assert prune(joined()) == joined()


def test_what_only_a_library_call_or_a_view_reads_stays() -> None:
    assert prune(replace(gated(), outputs=("mixed",))).steps == gated().steps


def test_what_may_raise_stays() -> None:
    def unread(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        x[i]
        x.new_zeros(3).scatter_(0, i, x)
        i // i
        x / x
        return x + 1

    program = prune(lowered_from(unread, torch.ones(3), torch.ones(3, dtype=torch.int64)))
    calls = [step.function for step in program.steps if isinstance(step, Call)]
    assert calls == ["aten::index", "aten::scatter", "aten::div"]
    assert sum(isinstance(step, Kernel) for step in program.steps) == 2  # zeros, and the sum

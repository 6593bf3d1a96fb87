"""Division by what is the same for a row: a multiplication that gives the same bits."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from opwright.ir.meaning.interpreter import interpret
from opwright.ir.printer import print_program
from opwright.ir.verifier import verify
from opwright.passes.order import optimize
from opwright.passes.scalars.reciprocals import reciprocals
from tests.derived import lowered_joint, specs_of


def shared(x: Tensor) -> Tensor:
    return x / x.sum(-1, keepdim=True)


def test_the_reciprocal_is_computed_once_for_each_row() -> None:
    _, program = lowered_joint(shared, specs_of("x", (torch.randn(3, 4, requires_grad=True),)))
    before = optimize(program)
    after = reciprocals(before)
    verify(after)
    assert "reciprocal" in print_program(after)
    assert print_program(reciprocals(after)) == print_program(after)


def test_it_is_the_quotient_to_the_last_bit() -> None:
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 2**32, (2, 1_000_000), np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 3.4e38, 1.2e-38, 1e-45], np.float32)
    left = np.concatenate([bits[0], np.repeat(special, len(special))])
    right = np.concatenate([bits[1], np.tile(special, len(special))])
    with np.errstate(all="ignore"):
        quotient = left / right
        product = (left.astype(np.float64) * (1.0 / right.astype(np.float64))).astype(np.float32)
    normal = ~(np.abs(quotient) < np.finfo(np.float32).tiny)
    np.testing.assert_array_equal(product[normal], quotient[normal])
    np.testing.assert_allclose(product[~normal], quotient[~normal], rtol=0, atol=1.5e-45)


def test_the_meaning_stays() -> None:
    _, program = lowered_joint(shared, specs_of("x", (torch.randn(3, 4, requires_grad=True),)))
    program = optimize(program)
    given = [np.random.default_rng(1).normal(size=(30, 40)).astype(np.float32)] * len(program.inputs)
    for left, right in zip(interpret(program, given), interpret(reciprocals(program), given), strict=True):
        np.testing.assert_array_equal(left, right)

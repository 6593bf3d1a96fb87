"""Every pass keeps the meaning of a Program: random functions, with their gradients, interpreted before and after."""

from __future__ import annotations

import pytest
import torch

from opwright.ir.program import Program, size_symbol
from opwright.ir.verifier import verify
from opwright.passes.order import ORDERS, optimize
from tests.derived import lowered_joint, run, specs_of
from tests.random_program import random_program
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.filterwarnings("ignore:Tensor.mT is deprecated on 0-D tensors")


def lowered_random(seed: int) -> tuple[Program, list[torch.Tensor], tuple[torch.Tensor, ...]]:
    """A lowered Program, inputs for it, and what eager gives for its outputs."""
    random = random_program(seed)
    arguments, function = random.arguments(random.sizes), random.function()
    joint, program = lowered_joint(function, specs_of([given.name for given in random.inputs], arguments))
    outputs = function(*arguments)
    cotangents = [
        torch.randn(output.shape, dtype=output.dtype, generator=torch.Generator().manual_seed(seed))
        for output, tangent in zip(outputs, joint.tangents, strict=True)
        if tangent is not None
    ]
    return program, [tensor.detach() for tensor in (*arguments, *cotangents)], outputs


def check(seed: int) -> None:
    program, given, outputs = lowered_random(seed)
    verify(program)
    before = run(program, given)
    for made, expected in zip(before, outputs, strict=False):  # what follows are gradients
        torch.testing.assert_close(made, expected.detach(), rtol=1e-4, atol=1e-4)
    for improve in (*ORDERS["cpp"].improving, *ORDERS["cpp"].finishing):
        program = improve(program)
        verify(program)
        after = run(program, given)
        # Sums may be added up in another order, and a few numbers in their own precision.
        exactly = improve.__name__ not in ("narrow_products", "add_before_reducing", "unroll")
        tolerance = 0.0 if exactly else 1e-5
        for left, right in zip(before, after, strict=True):
            torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance, equal_nan=True)
        before = after


def check_cases(seed: int) -> bool:
    """Whether there is a case for the sizes that are tried."""
    program, given, _ = lowered_random(seed)
    met = {
        str(size_symbol(buffer.name, dimension)): size
        for buffer, tensor in zip(program.inputs, given, strict=True)
        for dimension, size in enumerate(tensor.shape)
    }
    improved = optimize(program, "cpp", met)
    verify(improved)
    for left, right in zip(run(program, given), run(improved, given), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-4, equal_nan=True)
    return bool(improved.cases)


@pytest.mark.parametrize("seeds", mostly_at_night([range(8), range(8, 60)], by_day=1), ids=str)
def test_cases_keep_the_meaning(seeds: range) -> None:
    assert sum(map(check_cases, seeds)) > 0


@pytest.mark.parametrize("seed", mostly_at_night(range(30), by_day=8))
def test_passes_keep_the_meaning(seed: int) -> None:
    check(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(40))
def test_passes_keep_the_meaning_of_many(block: int) -> None:
    for seed in range(block * 50 + 10_000, block * 50 + 10_050):
        check(seed)

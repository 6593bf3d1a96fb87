"""Random functions of rows in half types keep the promise: values, and gradients of first and of second order.

What the backward pass reads of the forward pass must fit what it computes again: one of them rounded and the other not
is less exact than eager, which rounds both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from tests.accuracy.comparison import Comparison, Figures, pooled
from tests.accuracy.random_rows import RandomRows, arguments, random_rows
from tests.quiet_settings import quiet_settings
from tests.suite.built_together import build_together
from tests.suite.nights import mostly_at_night

SAMPLING = 1.15
LENGTHS = (33, 4, 1, 130, 16, 2, 9, 7)
BY_DAY = [(torch.bfloat16, 33, (5,)), (torch.float16, 1, (8,))]
SAMPLES = (3, 8, 24, 64)


def results(
    function: Callable[..., Sequence[Tensor]], given: Sequence[Tensor], kind: torch.dtype, order: int
) -> dict[str, Tensor]:
    """Values and gradients of an order; arguments and cotangents are those of a half type in every kind."""
    leaves = [argument.to(kind).requires_grad_() for argument in given]
    outputs = list(function(*leaves))
    found = {f"value {position}": output.detach() for position, output in enumerate(outputs)}
    for level in range(1, order + 1):
        outputs = [output for output in outputs if output is not None and output.requires_grad]
        if outputs:
            weights = [
                torch.randn(output.shape, generator=torch.Generator().manual_seed(level), dtype=torch.float64)
                for output in outputs
            ]
            weights = [weight.to(given[0].dtype).to(kind) for weight in weights]
            outputs = list(torch.autograd.grad(outputs, leaves, weights, allow_unused=True, create_graph=level < order))
            found |= {f"gradient {p}, order {level}": g.detach() for p, g in enumerate(outputs) if g is not None}
    return found


def measured(operator: Operator, rows: RandomRows, dtype: torch.dtype, order: int) -> dict[str, Figures]:
    """The figures of an operator; of more samples while some are outside of the promise."""
    samples: dict[str, list[Figures]] = {}
    seed = 0
    for most in SAMPLES:
        while seed < most:
            given = [argument.to(dtype) for argument in arguments(rows.length, seed)]
            ours = results(operator, given, dtype, order)
            eager = results(rows.function(), given, dtype, order)
            exact = results(rows.function(), given, torch.float64, order)
            assert ours.keys() == eager.keys() == exact.keys()
            for what in ours:
                found = Comparison(what, ours[what], eager[what], exact[what]).figures()
                samples.setdefault(what, []).append(found)
            seed += 1
        figures = {what: pooled(several) for what, several in samples.items()}
        if all(each.are_kept() for each in figures.values()):
            break
    return figures


def check(dtype: torch.dtype, length: int, programs: Mapping[int, RandomRows]) -> None:
    settings = quiet_settings(optimized=False)
    cases = {s: (Operator(rows.function(), name=f"rows_{s}", settings=settings), rows) for s, rows in programs.items()}
    given = [argument.to(dtype) for argument in arguments(length, 0)]
    calls = [partial(results, operator, given, dtype, order) for operator, _ in cases.values() for order in (1, 2)]
    build_together(*calls)
    build_together(*calls)  # what the first gradients are differentiated by
    for seed, (operator, rows) in cases.items():
        for order in (1, 2):
            for what, figures in measured(operator, rows, dtype, order).items():
                assert operator.last_rung == "cpp"
                assert figures.are_kept(SAMPLING), (
                    f"seed {seed}, rows of {length}, {what} of {order}: {figures.rms_ratio:.2f} × eager's rms error "
                    f"and {figures.worst_ratio:.2f} × its worst, {figures.ours.ulps:.1f} ulp\n{rows.text}"
                )


@pytest.mark.parametrize(
    ("dtype", "length", "seeds"),
    mostly_at_night(
        [
            *BY_DAY,
            *(
                (dtype, length, range(block, block + 10))
                for dtype in (torch.bfloat16, torch.float16)
                for length in LENGTHS
                for block in range(10, 60, 10)
            ),
        ],
        by_day=len(BY_DAY),
    ),
    ids=str,
)
def test_random_rows(dtype: torch.dtype, length: int, seeds: Iterable[int]) -> None:
    check(dtype, length, {seed: random_rows(seed, length) for seed in seeds})


def test_what_is_made_of_a_rounded_value_is_not_given_to_a_second_order() -> None:
    """The values of x that a second order computes again are not rounded."""
    head = "def rows(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor):\n"
    text = f"{head}    v0 = x * 7.3\n    v1 = v0.softmax(-1).log()\n    return (v0, v1)\n"
    check(torch.bfloat16, 16, {0: RandomRows(text, 16)})

"""Random functions as operators: forward and derivatives against eager, at the sizes of the trace and at others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from opwright.api.operator import Operator
from opwright.checking.accuracy import Comparison
from opwright.settings import Settings
from tests.binding.default_dtypes import default_dtype
from tests.quiet_settings import quiet_settings
from tests.random_forms import MORE_FORMS
from tests.random_program import RandomProgram, Sizes, Tensors, other_sizes, outputs_and_gradients, random_program, runs
from tests.suite.built_together import build_together
from tests.suite.nights import mostly_at_night
from tests.suite.places import on_device
from tests.suite.strides import stride_difference

pytestmark = [  # what torch says of the functions themselves
    pytest.mark.filterwarnings("ignore:Tensor.mT is deprecated on 0-D tensors"),
    pytest.mark.filterwarnings("ignore:(var|std).*degrees of freedom is <= 0"),
    pytest.mark.filterwarnings("ignore:Using a target size"),
]


def assert_agrees(
    operator: Callable[..., Any],
    program: RandomProgram,
    sizes: Sizes,
    seed: int,
    *,
    twice: bool = False,
    device: str = "cpu",
) -> None:
    arguments, reference = [on_device(given, device) for given in program.arguments(sizes, seed)], program.function()
    results = outputs_and_gradients(operator, arguments, twice=twice)
    eager = outputs_and_gradients(reference, arguments, twice=twice)
    assert_lies(results[0], eager[0], reference, arguments)
    exact = in_float64(lambda: outputs_and_gradients(reference, arguments, exactly=True, twice=twice))
    for what, *triple in zip(("output", "gradient", "second derivative"), results, eager, exact, strict=False):
        assert [tensor is None for tensor in triple[0]] == [tensor is None for tensor in triple[1]]
        present = [[tensor.detach() for tensor in tensors if tensor is not None] for tensors in triple]
        for actual, expected, truth in zip(*present, strict=True):
            assert actual.dtype is expected.dtype
            if is_float64_throughout(expected, truth):  # nothing is more exact than eager, which may cancel too
                torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-11, equal_nan=True)
            elif is_nothing_but_rounding(truth):
                torch.testing.assert_close(actual, torch.zeros_like(actual), rtol=0, atol=1e-4)
            else:
                Comparison(what, [narrowed(actual)], [narrowed(expected)], [truth], inputs=arguments).judge()


def assert_lies(
    results: Tensors, eager: Tensors, function: Callable[..., Any], arguments: Sequence[torch.Tensor]
) -> None:
    """Results have eager's strides, or those that torch tells of eager: for `2**x` these are others."""
    if all(not stride_difference(mine, theirs) for mine, theirs in zip(results, eager, strict=True)):
        return
    with torch.device("meta"):  # also of what it makes itself
        told = function(*[argument.to("meta") for argument in arguments])
    for mine, theirs in zip(results, told, strict=True):
        assert not (differs := stride_difference(mine, theirs)), differs


def is_float64_throughout(result: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether a result of eager was float64 on its whole way: float32 would have left an error."""
    return result.dtype is torch.float64 and torch.allclose(result, truth, rtol=1e-10, atol=1e-12, equal_nan=True)


def narrowed(result: torch.Tensor) -> torch.Tensor:
    """As exact as a result can be that was float32 on its way."""
    return result.float() if result.dtype is torch.float64 else result


def is_nothing_but_rounding(truth: torch.Tensor) -> bool:
    """Whether all that there is in float64 is what rounding left of a zero."""
    return truth.is_floating_point() and bool(truth.any()) and bool(truth.abs().max() < 1e-12)


def in_float64(run: Callable[[], list[Tensors]]) -> list[Tensors]:
    """Run with numbers that promote to float64."""
    with default_dtype(torch.float64):
        return run()


def of_seed(seed: int, *, wide: bool = False, rare: bool = False) -> RandomProgram:
    """A program; a wide one has inputs of double precision, a rare one statements that few have."""
    program = random_program(seed, statements=7, forms=MORE_FORMS) if rare else random_program(seed)
    if not wide:
        return program
    inputs = (replace(each, dtype=torch.float64) if each.dtype.is_floating_point else each for each in program.inputs)
    return replace(program, inputs=tuple(inputs))


def check(
    seed: int,
    settings: Settings,
    *,
    resized: bool,
    twice: bool = False,
    wide: bool = False,
    rare: bool = False,
    device: str = "cpu",
    rung: str = "cpp",
    for_gpus: bool = False,
) -> str | None:
    """Compare a program with its function; what served it, None if eager takes no such arguments."""
    program = of_seed(seed, wide=wide, rare=rare)
    operator = Operator(program.function(), name=f"random_{seed}", settings=settings)
    try:
        if not runs(program, program.sizes, seed):
            return None
        assert_agrees(operator, program, program.sizes, seed, twice=twice, device=device)
        others = any(given.layout != "row-major" for given in program.inputs)
        is_the_functions = (program.is_for_row_major and others) or (for_gpus and program.gathers)
        served = operator.last_rung
        assert rare or served == rung or is_the_functions
        if resized and runs(program, other_sizes(program, seed), seed):
            assert_agrees(operator, program, other_sizes(program, seed), seed, twice=twice, device=device)
        return served
    except BaseException as error:
        error.add_note(f"seed {seed}, sizes {program.sizes}, inputs {program.inputs}\n{program.text}")
        raise


def called(
    seed: int, settings: Settings, *, resized: bool, twice: bool = False, wide: bool = False, rare: bool = False
) -> None:
    """The calls of a check, without what they are compared with."""
    program = of_seed(seed, wide=wide, rare=rare)
    operator = Operator(program.function(), name=f"random_{seed}", settings=settings)
    for sizes in (program.sizes, *([other_sizes(program, seed)] if resized else [])):
        outputs_and_gradients(operator, program.arguments(sizes, seed), twice=twice)


def check_all(
    seeds: Iterable[int],
    *,
    optimized_every: int,
    resized_every: int,
    twice: bool = False,
    wide_every: int = 0,
    rare: bool = False,
) -> None:
    """Check programs whose kernels are built together."""
    cases = {
        seed: {
            "settings": quiet_settings(optimized=seed % optimized_every == 0),
            "resized": seed % resized_every == 0,
            "twice": twice,
            "wide": wide_every > 0 and seed % wide_every == 0,
            "rare": rare,
        }
        for seed in seeds
    }
    build_together(*(partial(called, seed, **how) for seed, how in cases.items()))
    served = [check(seed, **how) for seed, how in cases.items()]
    assert served.count("cpp") >= len(served) // 3


@pytest.mark.falls_back  # where it is for row-major inputs alone, which is asked for above
@pytest.mark.parametrize("block", mostly_at_night(range(20), by_day=(2,)))
def test_random_programs(block: int) -> None:
    check_all(range(1000 + block * 10, 1010 + block * 10), optimized_every=20, resized_every=4)


@pytest.mark.nightly
@pytest.mark.falls_back
@pytest.mark.parametrize("block", range(250))
def test_many_random_programs(block: int) -> None:
    check_all(range(block * 20 + 2000, block * 20 + 2020), optimized_every=1, resized_every=1)


@pytest.mark.falls_back
@pytest.mark.parametrize("block", mostly_at_night(range(100), by_day=1))
def test_random_programs_of_rarer_statements(block: int) -> None:
    check_all(range(block * 10 + 14000, block * 10 + 14010), optimized_every=20, resized_every=4, rare=True)


@pytest.mark.nightly
@pytest.mark.falls_back
@pytest.mark.parametrize("block", range(50))
def test_second_derivatives_of_random_programs(block: int) -> None:
    check_all(range(block * 10 + 8000, block * 10 + 8010), optimized_every=1, resized_every=2, twice=True)


@pytest.mark.falls_back
@pytest.mark.parametrize("block", mostly_at_night(range(100), by_day=(7,)))
def test_random_programs_under_float64_as_default(block: int) -> None:
    with default_dtype(torch.float64):
        seeds = range(block * 10 + 11000, block * 10 + 11010)
        check_all(seeds, optimized_every=20, resized_every=4, twice=block % 3 == 0, wide_every=2)


def test_comparison_notices_a_wrong_kernel() -> None:
    program = random_program(1000)

    def wrong(*arguments: torch.Tensor) -> list[torch.Tensor]:
        return [output * 1.001 for output in program.function()(*arguments)]

    with pytest.raises(Exception, match=r"is wrong|not close"):
        assert_agrees(wrong, program, program.sizes, 0)

"""Whether the text of a reference computes the same as the reference; tested before a wheel is packed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from opwright.deployment.wheels.optimizers import PlannedOptimizer
from opwright.errors import WheelUnsupported
from opwright.operators.base import BaseOperator
from opwright.samples import told
from opwright.toolchain.modules import module_of_text
from opwright.tracing.interface.signature import place_of

_NAME = "opwright_carried_reference"
_SEED = 0


def refuse_unfaithful(text: str, operator: BaseOperator, dtypes: Sequence[torch.dtype]) -> None:
    """Run the text's function and the reference on the first sample in each dtype, and compare.

    Raises:
        SamplesMissing: If the samples cannot be made.
        WheelUnsupported: If they give different results, or the text raises.
    """
    samples = _first_samples(operator, dtypes)
    try:
        carried = getattr(module_of_text(_NAME, text), operator.reference.__name__)
        same = all(_agree(carried, operator.reference, sample) for sample in samples)
    except Exception as error:
        raise _refused(operator.reference, f"raises {type(error).__name__}: {error}") from error
    if not same:
        raise _refused(operator.reference, "gives other results")


def refuse_unfaithful_optimizer(text: str, planned: PlannedOptimizer) -> None:
    """Compare the optimizer that the text defines with the one that it was taken from.

    Raises:
        WheelUnsupported: If its steps give other results, or the text raises.
    """
    try:
        same = planned.agrees(getattr(module_of_text(_NAME, text), planned.name))
    except Exception as error:
        raise _refused(planned.function, f"raises {type(error).__name__}: {error}") from error
    if not same:
        raise _refused(planned.function, "gives other results")


def _first_samples(operator: BaseOperator, dtypes: Sequence[torch.dtype]) -> list[Any]:
    if operator.samples is None:
        return []
    samples = told(operator.samples, operator.name)
    made = [next(iter(samples("cpu", dtype)), None) for dtype in dtypes]
    return [sample for sample in made if sample is not None]


def _agree(carried: Callable[..., Any], reference: Callable[..., Any], sample: Any) -> bool:
    results = []
    for function in (carried, reference):
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(_SEED)
            copied = sample.map(torch.clone)
            results.append(tree_leaves(function(*copied.args, **copied.kwargs)))
    return len(results[0]) == len(results[1]) and all(map(_same, *results))


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        # Not bit by bit: an operator that the reference calls runs a kernel there, and its reference here.
        tolerance = {"rtol": 1e-2, "atol": 1e-2} if first.dtype.itemsize == 2 else {"rtol": 1e-4, "atol": 1e-5}
        return first.dtype == second.dtype and torch.allclose(first, second, equal_nan=True, **tolerance)
    return bool(first == second)


def _refused(function: Callable[..., Any], fact: str) -> WheelUnsupported:
    return WheelUnsupported(
        f"the text of {function.__name__}, taken out of its file, {fact}, so it cannot be carried in a wheel",
        place=place_of(function),
        hint="let it depend on its arguments and on values that do not change",
    )

"""What is computed of numbers alone, and the rest, together mean what the Program did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from opwright.ir.meaning.interpreter import interpret
from opwright.ir.verifier import verify
from opwright.operators.updates import derive_update
from opwright.passes.buffers.numbers_apart import numbers_apart
from opwright.passes.order import optimize
from opwright.tracing.interface.specs import NumberSpec, TensorSpec

NUMBERS = (NumberSpec("rate", 0.1), NumberSpec("step", 3.0))


def rows(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate / (1 - 0.5**step) * g.mean(-1, keepdim=True),)


def only_given(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * g.softmax(-1),)


def of_sizes(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * (g / p.shape[0]).amax(0),)


def no_number(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - g.softmax(0),)


def to_a_library(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - g @ g.new_full((5, 5), 1.0) * rate**2 + (rate * step),)


def constant(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - torch.where(g.sum(0) > 0, torch.ones(()), rate),)


@pytest.mark.parametrize("function", [rows, only_given, of_sizes, no_number, to_a_library, constant])
def test_the_parts_mean_the_whole(function: Callable[..., Any]) -> None:
    specs = [*(TensorSpec(name, torch.float32, (4, 5)) for name in "pg"), *NUMBERS]
    program = derive_update(function, specs, ["p"], "update").lowered
    apart = numbers_apart(program, [each.name for each in NUMBERS])
    generator = np.random.default_rng(0)
    given = [generator.standard_normal((4, 5)).astype("float32") for _ in "pg"] + [np.array(0.1), np.array(3.0)]
    for numbers, rest in ((apart.numbers, apart.rest), (optimize(apart.numbers, "cpp"), optimize(apart.rest, "cpp"))):
        verify(numbers)
        verify(rest)
        made = dict(zip(numbers.outputs, interpret(numbers, given), strict=True))
        known = {buffer.name: value for buffer, value in zip(program.inputs, given, strict=True)} | made
        made |= dict(zip(rest.outputs, interpret(rest, [known[b.name] for b in rest.inputs]), strict=True))
        for name, right in zip(program.outputs, interpret(program, given), strict=True):
            np.testing.assert_allclose(made[name], right, rtol=1e-6)


def test_no_kernel_of_the_rest_computes_of_numbers_alone() -> None:
    specs = [*(TensorSpec(name, torch.float32, (4, 5)) for name in "pg"), *NUMBERS]
    apart = numbers_apart(derive_update(rows, specs, ["p"], "update").lowered, [each.name for each in NUMBERS])
    by_value = [buffer for buffer in apart.rest.inputs if buffer.by_value]
    assert [(buffer.dtype.value, buffer.shape) for buffer in by_value] == [("float64", ())]
    assert apart.rest.inputs[-1] is by_value[0]
    assert apart.numbers.outputs == (by_value[0].name, "holds")
    assert [buffer.name for buffer in apart.rest.inputs[:-1]] == ["p", "g"]

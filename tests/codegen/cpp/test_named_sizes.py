"""Sizes that a Program computes have names, and the names stand for what was there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.codegen.cpp.named_sizes import named_sizes
from opwright.ir.expressions.integer import substitute
from opwright.ir.program import programs_of
from opwright.ir.symbols import map_integers
from opwright.operators.stages import derive
from opwright.tracing.interface.specs import TensorSpec


def strided(x: Tensor, weight: Tensor) -> Tensor:
    return torch.relu(functional.conv2d(x, weight, stride=2, padding=1))


def flattened(x: Tensor, weight: Tensor) -> Tensor:
    return torch.sin(functional.conv2d(x, weight)).flatten(1).cos()


def grouped(x: Tensor, weight: Tensor) -> Tensor:
    return functional.group_norm(x, 4, weight)


SHAPES: dict[Callable[..., Any], tuple[tuple[int, ...], ...]] = {
    strided: ((3, 4, 16, 18), (5, 4, 3, 3)),
    flattened: ((3, 4, 16, 18), (5, 4, 3, 3)),
    grouped: ((3, 8, 5, 6), (8,)),
}


@pytest.mark.parametrize("reference", SHAPES)
def test_with_the_values_put_in_it_is_the_same_program(reference: Callable[..., Any]) -> None:
    shapes = SHAPES[reference]
    specs = [TensorSpec(name, torch.float32, shape, True) for name, shape in zip(("x", "weight"), shapes, strict=True)]
    derivation = derive(reference, specs, reference.__name__)
    programs = [part for each in (derivation.forward, derivation.backward) if each for part in programs_of(each)]
    assert any(named_sizes(program)[1] for program in programs)
    for program in programs:
        named, sizes = named_sizes(program)
        values: dict[str, Any] = {}
        for name, value in sizes:
            assert name not in values
            values[name] = substitute(value, values)
        assert map_integers(named, lambda size: substitute(size, values)) == program  # noqa: B023


def test_what_a_convolution_computes_is_written_once() -> None:
    specs = [TensorSpec("x", torch.float32, (3, 4, 16, 18)), TensorSpec("weight", torch.float32, (5, 4, 3, 3))]
    text = derive(flattened, specs, "flattened").plan.forward.text
    for dimension in (2, 3):
        assert text.count(f"weight_size_{dimension};") == 1  # x_size_2 + 1 - weight_size_2
    code = [line for line in text.splitlines() if not line.startswith("//")]
    assert "\n".join(code).count(" - ") == 2

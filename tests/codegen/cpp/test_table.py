"""Updates of many tensors: which Programs are such, and what is computed once for a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from opwright.codegen.cpp.table.flat import flat
from opwright.codegen.cpp.table.merged import merged
from opwright.errors import NotElementwise
from opwright.ir.meaning.interpreter import interpret
from opwright.ir.program import Program
from opwright.ir.verifier import verify
from opwright.operators.updates import Update, derive_update, table_source
from opwright.passes.order import finish, optimize
from opwright.tracing.interface.specs import NumberSpec, TensorSpec

RATE, STEP = NumberSpec("rate", 0.1), NumberSpec("step", 3.0)


def derived(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Update:
    specs = [TensorSpec(name, torch.float32, shape) for name, shape in zip("pg", shapes, strict=True)]
    return derive_update(function, [*specs, RATE, STEP], ["p"], "update")


def fused(update: Update) -> Program:
    return optimize(update.lowered, "cpp")


def elementwise(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate / (1 - 0.5**step) * g,)


@pytest.mark.parametrize("shape", [(37,), (5, 7), (1, 7), (2, 3, 4, 5), (1,), (1, 1)])
def test_elements_are_updated_whatever_the_rank(shape: tuple[int, ...]) -> None:
    texts = {table_source(derived(elementwise, s, s), "step", None).source.text for s in (shape, (37,))}
    assert len(texts) == 1


def test_numbers_are_computed_once_for_a_tensor() -> None:
    update = flat(fused(derived(elementwise, (5, 7), (5, 7))), ["p"])
    assert [let.value.dtype.value for let in update.kept] == ["float32"]
    text = table_source(derived(elementwise, (5,), (5,)), "step", None).source.text
    before, _, elements = text.partition("static void elements")
    assert "pow(" in before
    assert "pow(" not in elements


def reduces(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * g.mean(),)


def reduces_rows(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * g.mean(-1, keepdim=True),)


def mirrors(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * g.t(),)


def broadcasts(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * g,)


def multiplies(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * (g @ g),)


def counts(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * g / p.numel(),)


def counts_rows(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * g / p.shape[0],)


def decides(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * g if p.shape[0] > 3 else p + rate * g,)


def is_square(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * g if p.shape[0] == p.shape[1] else p + rate * g,)


@pytest.mark.parametrize(("function", "shapes"), [
    (reduces_rows, ((5, 7), (5, 7))), (mirrors, ((6, 6), (6, 6))), (broadcasts, ((5, 7), (7,))),
    (broadcasts, ((5, 7), (5, 1))), (multiplies, ((6, 6), (6, 6))), (counts_rows, ((5, 7), (5, 7))),
    (decides, ((5, 7), (5, 7))), (is_square, ((6, 6), (6, 6))), (is_square, ((5, 7), (5, 7))),
])  # fmt: skip
def test_other_updates_are_refused(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(NotElementwise, match="so it is no update element by element"):
        flat(fused(derived(function, *shapes)), ["p"])


def normalizes(p: Any, g: Any, rate: Any, step: Any) -> Any:
    centered = g - g.mean()
    return (p - rate * centered / centered.square().mean().sqrt(),)


@pytest.mark.parametrize(("function", "passes"), [(elementwise, 0), (counts, 0), (reduces, 1), (normalizes, 2)])
def test_whole_tensors_are_looked_at_in_passes(function: Callable[..., Any], passes: int) -> None:
    update = derived(function, (5, 7), (5, 7))
    assert len(flat(fused(update), ["p"]).passes) == passes
    table_source(update, "step", None)
    if function is elementwise:
        table_source(update, "step", None, whole=False)
        return
    with pytest.raises(NotElementwise, match="it looks at a whole tensor, of which there are only parts"):
        table_source(update, "step", None, whole=False)


def of_its_element(p: Any, g: Any, rate: Any, step: Any) -> Any:
    return (p - rate * g.abs() / (1 + g.square().sum()),)


@pytest.mark.parametrize(("function", "shape"), [
    *((function, (5, 7)) for function in (elementwise, counts, reduces, normalizes)),
    *((function, shape) for function in (elementwise, counts, of_its_element) for shape in ((1,), (1, 1))),
])  # fmt: skip
def test_merged_kernels_mean_the_same(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    program = finish(fused(derived(function, shape, shape)), "cpp")
    generator = np.random.default_rng(0)
    given = [generator.standard_normal(shape).astype("float32") for _ in "pg"] + [np.array(0.1), np.array(3.0)]
    once = merged(program)
    verify(once)
    for ours, right in zip(interpret(once, given), interpret(program, given), strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-6)


def test_a_number_that_is_computed_of_the_only_element_is_refused() -> None:
    """The processor computes such numbers, and the element may be in the memory of a GPU."""

    def scales(p: Any, g: Any, scale: Any, rate: Any, step: Any) -> Any:
        return p - rate * g, scale + g.sum()

    specs = [TensorSpec(name, torch.float32, shape) for name, shape in zip("pgs", [(1,), (1,), ()], strict=True)]
    update = derive_update(scales, [*specs, RATE, STEP], ["p", "s"], "update")
    with pytest.raises(NotElementwise, match="so it is no update element by element"):
        flat(fused(update), ["p", "s"])

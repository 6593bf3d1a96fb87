"""Programs as formulas."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from opwright.codegen.formula import TEMPLATES, emit_formulas
from opwright.ir.expressions.functions import FUNCTIONS
from tests.codegen.emitted_modules import programs_of


def lltm_cell(gates, old_cell):
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + functional.elu(g) * torch.sigmoid(i)
    return torch.tanh(cell) * torch.sigmoid(o), cell


def powers(x):
    return x**3 - x * x / (x + 2)


def shifted(x):
    return x[1:] * -0.5


def product(x, y):
    return torch.abs(x @ y)


CASES = [
    (lltm_cell, [(16, 384), (16, 128)], ["cell = old_cell + elu(g)·σ(i)", "output_0 = tanh(cell)·σ(o)"]),
    (powers, [(5,)], ["output_0 = x³ - x²/(x + 2)"]),
    (shifted, [(5,)], ["slice = x[i0 + 1]", "output_0 = slice·(-0.5)"]),
    (product, [(5, 3), (3, 4)], ["mm = mm(x, y)", "output_0 = |mm|"]),
]


@pytest.mark.parametrize(("reference", "shapes", "formulas"), CASES, ids=[case[0].__name__ for case in CASES])
def test_formulas(reference, shapes, formulas):
    forward, _, _ = programs_of(reference, shapes, torch.float32)
    found = [line.replace("slice_x", "slice").replace("mm_x", "mm") for line in emit_formulas(forward)]
    assert found == formulas


def test_templates_are_of_functions_that_exist():
    assert set(TEMPLATES) <= set(FUNCTIONS)

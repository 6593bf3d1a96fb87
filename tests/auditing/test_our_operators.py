"""Our own operators under the audit: a few rows of one in the ordinary tests, all rows of forty at night."""

from pathlib import Path

import pytest
import torch

import opwright
from opwright.cli.load import load_operators
from tests.auditing.assorted import OPERATORS, cell, gelu, layer_norm, linear, softmax, two_results
from tests.auditing.three_ways import SAMPLES, WAYS, reference

EXAMPLES = load_operators(str(Path(__file__).parents[2] / "examples" / "lltm.py"))


def layer_norm_in_means(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * weight + bias


# What is right where torch's own function is not: its higher derivatives are off by more than their size.
RIGHT = {layer_norm: layer_norm_in_means}


def test_an_operator_in_a_moment():
    rows = (
        "autograd: backward",
        "hooks",
        "torch.func: jvp",
        "vmap: in_dims",
        "forward mode: ",
        "fake and meta",
        "copies",
    )
    scorecard = opwright.audit(two_results, quick=True, only=rows)
    assert not scorecard.red, [str(row) for row in scorecard.red]
    assert sum(row.state == "pass" for row in scorecard.rows) > 25


@pytest.mark.nightly
@pytest.mark.falls_back
@pytest.mark.parametrize("operator", [*EXAMPLES, *OPERATORS], ids=lambda operator: operator.name)
def test_an_operator_in_every_row(operator):
    scorecard = opwright.audit(operator, RIGHT.get(operator), quick=operator not in EXAMPLES)
    assert not scorecard.red, [str(row) for row in scorecard.red]


@pytest.mark.nightly
@pytest.mark.falls_back
@pytest.mark.parametrize("operator", [cell, gelu, layer_norm, linear, softmax, two_results], ids=lambda o: o.name)
def test_an_operator_in_bfloat16(operator):
    scorecard = opwright.audit(operator, RIGHT.get(operator), quick=True, dtype=torch.bfloat16)
    assert not scorecard.red, [str(row) for row in scorecard.red]


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["custom_op", "autograd.Function"])
def test_other_ways_are_red(way):
    scorecard = opwright.audit(WAYS[way], reference, SAMPLES, quick=True)
    red = {row.name for row in scorecard.red}
    assert {"jvp", "hessian", "per-sample gradients", "vmap of grad", "dual inputs"} <= red

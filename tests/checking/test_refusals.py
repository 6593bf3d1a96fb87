"""Which wrong calls can be made on a GPU: those that are refused before anything runs there."""

from __future__ import annotations

import torch

from opwright.checking.checks.refusals import misshapen, refuses_values
from opwright.samples import Sample


def test_what_is_refused_for_its_values() -> None:
    sample = Sample((torch.randn(4, 5), torch.tensor([0, 4, 2, 1])))
    told = {wrong.name: refuses_values(torch.nn.functional.cross_entropy, wrong) for wrong in misshapen(sample)}
    assert told["input 0 with a column less"]  # the class 4 of 4 columns
    assert not any(refused for name, refused in told.items() if name != "input 0 with a column less")


def test_what_is_taken_is_not_refused() -> None:
    assert not refuses_values(torch.mul, Sample((torch.randn(4, 5), torch.randn(4, 5))))

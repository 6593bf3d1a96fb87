"""Annotations whose names only type checkers know: from Python 3.14 on they are evaluated when somebody asks for them.

This module does without `from __future__ import annotations`, which would make them texts; before Python 3.14 they are
written as texts.
"""

import sys

import pytest
import torch

from opwright.api.operator import Operator
from opwright.introspection import annotations_of, signature_of
from opwright.tracing.interface.annotations import read_annotations

TEXT = """
def scaled(x: torch.Tensor, y: {unknown}, *, by: {unknown} = 2.0) -> torch.Tensor:
    return x.exp() * y * by

class Scaled:
    factor: {unknown}
"""


@pytest.fixture
def names() -> dict[str, object]:
    unknown = "Unknown" if sys.version_info >= (3, 14) else "'Unknown'"
    names: dict[str, object] = {"torch": torch, "__name__": "lazily_annotated"}
    exec(compile(TEXT.format(unknown=unknown), "lazily_annotated.py", "exec", dont_inherit=True), names)
    return names


def test_they_are_told_as_written(names):
    assert [*signature_of(names["scaled"]).parameters] == ["x", "y", "by"]
    assert annotations_of(names["scaled"])["x"] is torch.Tensor
    assert annotations_of(names["Scaled"]).keys() == {"factor"}
    assert read_annotations(names["scaled"]) == {"x": torch.Tensor, "return": torch.Tensor}


@pytest.mark.falls_back
def test_such_a_function_can_be_an_operator(names):
    operator, x = Operator(names["scaled"], name="tests::lazily_annotated"), torch.ones(3)
    torch.testing.assert_close(operator(x, x, by=3.0), x.exp() * 3.0)
    assert operator.last_rung == "cpp"

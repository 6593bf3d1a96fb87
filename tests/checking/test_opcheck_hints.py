"""Why opcheck is left out, and what to do about it, depends on what is checked."""

from __future__ import annotations

import torch

import opwright
from opwright.checking.judge import check

SAMPLES = opwright.shapes("N", N=3)


def doubled(x):
    return torch.sin(x) * 2


def hints(subject) -> set[str]:
    verdict = check(subject, doubled, SAMPLES, dtypes=[torch.float32], only=("opcheck",))
    return {row.detail for row in verdict.rows if row.check == "opcheck"}


def test_an_operator_is_told_to_annotate_and_a_callable_to_register():
    (of_callable,) = hints(doubled)
    assert "register it with torch.library.custom_op" in of_callable
    of_operator = hints(opwright.operator(samples=SAMPLES)(doubled))
    assert any("annotate parameters: x: torch.Tensor" in hint for hint in of_operator), of_operator

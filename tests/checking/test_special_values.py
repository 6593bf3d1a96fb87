"""Where PyTorch's own kernel for GPUs differs from the operations that it stands for."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from opwright import check, shapes
from opwright.checking.checks import special_values


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


class Fused:
    """As `rms_norm` is on a GPU: in a row with an infinity all is NaN."""

    is_fused = True

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        result = scaled(x)
        return torch.where(x.isinf().any(-1, keepdim=True), math.nan, result) if self.is_fused else result


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> Fused:
    """A reference whose samples seem to be on a GPU, where it is another one."""
    made, run = Fused(), special_values.on_the_processor

    def on_the_processor(reference: Any) -> Any:
        def called(*args: Any) -> Any:
            made.is_fused = False
            try:
                return run(reference)(*args)
            finally:
                made.is_fused = True

        return called

    monkeypatch.setattr(special_values, "is_here", lambda sample: False)
    monkeypatch.setattr(special_values, "on_the_processor", on_the_processor)
    return made


def test_results_may_be_those_of_the_processor(fused: Fused) -> None:
    assert check(scaled, fused, shapes("B S", B=(4,), S=(8,)), only=["special values"]).passed
    assert check(fused, fused, shapes("B S", B=(4,), S=(8,)), only=["special values"]).passed


def test_others_are_wrong(fused: Fused) -> None:
    verdict = check(lambda x: scaled(x).nan_to_num(), fused, shapes("B S", B=(4,), S=(8,)), only=["special values"])
    assert not verdict.passed


def test_a_fault_stays_where_the_reference_cannot_run_on_the_processor(
    fused: Fused, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(_: Any) -> Any:
        def called(*_: Any) -> Any:
            raise RuntimeError("Expected all tensors to be on the same device")

        return called

    monkeypatch.setattr(special_values, "on_the_processor", nowhere)
    assert not check(scaled, fused, shapes("B S", B=(4,), S=(8,)), only=["special values"]).passed


def test_on_the_processor_there_is_one_right_result() -> None:
    assert not check(scaled, Fused(), shapes("B S", B=(4,), S=(8,)), only=["special values"]).passed

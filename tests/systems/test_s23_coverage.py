"""S23: which functions a type handles, which of their spellings disagree, and which have another signature."""

from __future__ import annotations

from typing import Any

import torch

import opwright


class Scaled(opwright.tensors.Like):
    """A multiple of the identity, written by somebody in a hurry."""

    def __init__(self, value: float = 2.0, n: int = 3) -> None:
        self.value, self.n = value, n

    def densify(self) -> torch.Tensor:
        return self.value * torch.eye(self.n)


@Scaled.implements(torch.mean)
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return input.densify().mean(dtype=dtype) if dim is None else input.densify().mean(dim, keepdim, dtype=dtype)


def dense(value: Any) -> Any:
    return value.densify() if isinstance(value, Scaled) else value


@Scaled.implements(torch.sub, partial=True)
def sub(input: Any, other: Any) -> Any:
    """Forgets alpha."""
    return dense(input) - dense(other)


@Scaled.implements(torch.Tensor.__rsub__)
def reflected_sub(input: Any, other: Any) -> Any:
    """Forgets that the other comes first."""
    return dense(input) - dense(other)


@Scaled.implements(torch.trace)
def trace(input: Any) -> Any:
    return torch.tensor(input.value)


def test_what_is_handled_falls_back_fails_and_is_wrong() -> None:
    report = opwright.tensors.coverage(Scaled, [Scaled()], only=["mean", "sub", "trace", "exp"])
    told = {
        part: {entry.name for entry in getattr(report, part)} for part in ("handled", "failing", "wrong", "signatures")
    }
    assert "torch.mean" in told["handled"]
    assert "torch.exp" in told["failing"]  # no handler, and no fallback
    assert "torch.trace" in told["wrong"]  # 2 instead of 6
    assert "torch.sub" in told["signatures"]
    assert not report.passed


def test_spellings_that_disagree_are_named() -> None:
    report = opwright.tensors.coverage(Scaled, [Scaled()], only=["sub"])
    assert "torch.Tensor.__rsub__" in {entry.name for entry in (*report.wrong, *report.disagreeing)}, repr(report)
    assert "torch.sub" not in {entry.name for entry in report.wrong}


def test_with_a_fallback_all_else_falls_back() -> None:
    class Dense(Scaled):
        pass

    Dense.fallback("densify")
    report = opwright.tensors.coverage(Dense, [Dense()], only=["exp", "mean"])
    assert "torch.exp" in {entry.name for entry in report.fallback}
    assert "torch.exp" not in {entry.name for entry in report.failing}

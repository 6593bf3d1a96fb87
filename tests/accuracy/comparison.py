"""Compare an operator's result with eager's and the exact one: errors, and whether they keep the promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

RMS_FACTOR, WORST_FACTOR, ULPS = 2.0, 3.0, 4.0


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of a result.

    Attributes:
        rms: The root mean square error, relative to that of the exact result.
        worst: The largest error, relative to the same.
        ulps: The largest error in units in the last place of the exact number.
    """

    rms: float
    worst: float
    ulps: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Errors of an operator and of eager; the operator's are infinite where only it returns NaN or Inf."""

    ours: Errors
    eager: Errors

    @property
    def rms_ratio(self) -> float:
        """The ratio of the rms error to eager's; 1 if both are zero."""
        return _ratio(self.ours.rms, self.eager.rms)

    @property
    def worst_ratio(self) -> float:
        """The ratio of the largest error to eager's."""
        return _ratio(self.ours.worst, self.eager.worst)

    def are_kept(self, slack: float = 1.0) -> bool:
        """Whether the promise is kept: twice eager's rms error and three times its worst, or 4 ulp everywhere.

        Args:
            slack: A factor for the noise of a sample.
        """
        within = self.rms_ratio <= slack * RMS_FACTOR and self.worst_ratio <= slack * WORST_FACTOR
        return within or self.ours.ulps <= ULPS


def pooled(samples: Sequence[Figures]) -> Figures:
    """Combine the figures of several samples, each relative to the size of its own results."""
    return Figures(_pooled([sample.ours for sample in samples]), _pooled([sample.eager for sample in samples]))


def _pooled(samples: Sequence[Errors]) -> Errors:
    rms = math.sqrt(sum(sample.rms**2 for sample in samples) / len(samples))
    return Errors(rms, max(sample.worst for sample in samples), max(sample.ulps for sample in samples))


_NOT_A_NUMBER = Errors(math.inf, math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Three results of one computation.

    Attributes:
        what: "value", or "gradient 0" for that of the first argument.
        actual: What the operator returned.
        eager: What the function returned in the same dtype.
        exact: What it returned in float64.
    """

    what: str
    actual: Tensor
    eager: Tensor
    exact: Tensor

    def figures(self) -> Figures:
        """Measure the errors."""
        numbers = self._numbers
        return Figures(_errors(self.actual, self.exact, numbers), _errors(self.eager, self.exact, numbers))

    def planted(self) -> Comparison:
        """The same with a planted error: three times eager's error plus three times 4 ulp."""
        error = self.eager.double() - self.exact
        away = torch.where(error < 0, -1.0, 1.0)
        wrong = self.exact + 3 * error + away * 3 * ULPS * _spacing(self.exact, self.eager.dtype)
        return replace(self, actual=torch.where(self._numbers, wrong, self.eager.double()).to(self.eager.dtype))

    @property
    def _numbers(self) -> Tensor:
        return self.exact.to(self.eager.dtype).isfinite() & self.eager.isfinite()


def _errors(result: Tensor, exact: Tensor, numbers: Tensor) -> Errors:
    found, true = result.double()[numbers], exact[numbers]
    if not found.numel():
        return Errors(0.0, 0.0, 0.0)
    if not found.isfinite().all():
        return _NOT_A_NUMBER
    error = (found - true).abs()
    scale = true.square().mean().sqrt().item() or 1.0
    rms = error.square().mean().sqrt().item()
    ulps = (error / _spacing(true, result.dtype)).max().item()
    return Errors(rms / scale, error.max().item() / scale, ulps)


def _ratio(ours: float, eager: float) -> float:
    if ours == eager:
        return 1.0
    return ours / eager if eager else math.inf


def _spacing(exact: Tensor, dtype: torch.dtype) -> Tensor:
    """One unit in the last place of each number, rounded to a dtype."""
    kind = torch.finfo(dtype)
    exponent = torch.frexp(exact.abs().clamp(kind.tiny, kind.max)).exponent - 1
    return torch.ldexp(torch.full_like(exact, kind.eps), exponent)

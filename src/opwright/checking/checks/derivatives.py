"""Derivatives: first and second order against numerical differentiation of the candidate itself.

Always in float64. A numerical derivative subtracts two nearly equal numbers; in float32 the difference is mostly
rounding error, and even a built-in sigmoid fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.gradcheck import GradcheckError

from opwright.checking.calls import fresh, outputs_of, tracked
from opwright.checking.finding import Fault, Finding, Skipped, one_line
from opwright.checking.trial import Trial
from opwright.samples import Sample

_WHY_DOUBLE = "in float64, because in float32 a difference of nearly equal numbers is mostly rounding error"
_ELEMENTWISE_UP_TO = 200  # a numerical Jacobian costs two calls for each element; above it, random projections


def gradcheck(trial: Trial, sample: Sample) -> Finding:
    """Compare the gradient with a numerical derivative."""
    return _compare(torch.autograd.gradcheck, trial, sample)


def gradgradcheck(trial: Trial, sample: Sample) -> Finding:
    """Compare the gradient of the gradient with a numerical derivative."""
    return _compare(torch.autograd.gradgradcheck, trial, sample)


def _compare(checker: Callable[..., bool], trial: Trial, sample: Sample) -> Finding:
    fault = _fault(checker, trial.candidate, sample)
    if fault is None:
        return Finding(_WHY_DOUBLE)
    if fault_of_reference := _fault(checker, trial.reference, sample):
        raise Skipped(
            f"the reference itself fails: {fault_of_reference}", hint="give samples= values where it is smooth"
        )
    raise Fault(fault)


def _fault(checker: Callable[..., bool], function: Callable[..., Any], sample: Sample) -> str | None:
    def of_tensors(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(outputs_of(function, sample.with_tensors(tensors)))

    inputs = tuple(tracked(fresh(sample)).tensors())
    large = sum(tensor.numel() for tensor in inputs) > _ELEMENTWISE_UP_TO
    try:
        checker(of_tensors, inputs, fast_mode=large)
    except (GradcheckError, RuntimeError, ValueError) as error:
        return one_line(error)
    return None

"""Refusals: for wrong shapes, the operator raises the error that the reference raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from opwright.checking.calls import fresh, is_here, outputs_of
from opwright.checking.finding import Fault, Finding, Skipped, fault_within, one_line
from opwright.checking.trial import Trial
from opwright.errors import NoKernel, TracingFailed
from opwright.samples import Sample


def refusals(trial: Trial, sample: Sample) -> Finding:
    """Drop a row, a column or an axis of each input in turn and compare the exceptions."""
    refused = [_refusal(trial, wrong) for wrong in misshapen(sample)]
    if not any(refused):
        raise Skipped("the reference accepts every wrong shape that was tried")
    return Finding(f"{sum(refused)} wrong shapes refused")


def demand_refusal(trial: Trial, sample: Sample, expected: Exception) -> None:
    """Demand the same exception of the candidate.

    Raises:
        Fault: It raises another one, or none.
        Skipped: It cannot trace such a call, so the reference serves it.
    """
    try:
        outputs_of(trial.candidate, fresh(sample))
    except TracingFailed as refusal:
        raise Skipped("your function serves such calls, and raises its own error") from refusal
    except NoKernel:
        raise
    except Exception as error:
        if type(error) is type(expected) and str(error) == str(expected):
            return
        raise Fault(f"raises {one_line(error)!r}, the reference raises {one_line(expected)!r}") from error
    raise Fault(f"accepts arguments for which the reference raises {one_line(expected)!r}")


def _refusal(trial: Trial, sample: Sample) -> bool:
    if not is_here(sample) and refuses_values(trial.reference, sample):
        return False
    try:
        outputs_of(trial.reference, fresh(sample))
    except Exception as expected:
        with fault_within(sample.name):
            demand_refusal(trial, sample, expected)
        return True
    return False


def refuses_values(reference: Callable[..., Any], sample: Sample) -> bool:
    """Whether the reference refuses what is in the tensors, such as an index beyond a column that was dropped.

    A GPU notices it after the call, and does no other work in this process. So the processor is asked: what it refuses
    with these integers and takes with zeros depends on values.
    """
    here = [tensor.detach().cpu() for tensor in sample.tensors()]
    zeros = [tensor if tensor.is_floating_point() else torch.zeros_like(tensor) for tensor in here]
    return _is_refused(reference, sample.with_tensors(here)) and not _is_refused(reference, sample.with_tensors(zeros))


def _is_refused(reference: Callable[..., Any], sample: Sample) -> bool:
    try:
        outputs_of(reference, fresh(sample))
    except Exception:
        return True
    return False


def misshapen(sample: Sample) -> Iterator[Sample]:
    """The sample with a row, a column or an axis of one tensor dropped or added, most of which are wrong."""
    tensors = sample.tensors()
    for index, tensor in enumerate(tensors):
        if not tensor.numel() or not tensor.dim():
            continue
        wrong = {
            "a row less": tensor[:-1],
            "a column less": tensor[..., :-1],
            "an axis less": tensor[0],
            "an axis more": tensor.new_zeros((2, *tensor.shape)),
        }
        for what, replacement in wrong.items():
            changed = sample.with_tensors([*tensors[:index], replacement, *tensors[index + 1 :]])
            yield Sample(changed.args, changed.kwargs, f"input {index} with {what}")

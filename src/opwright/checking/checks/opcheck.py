"""Opcheck: PyTorch's own test of an operator's schema, registration, fake implementation and compilation."""

from __future__ import annotations

import warnings

import torch

from opwright.checking.calls import fresh, tracked
from opwright.checking.finding import Fault, Finding, Skipped, one_line
from opwright.checking.subject import PLAIN_CALLABLE
from opwright.checking.trial import Trial
from opwright.samples import Sample


def opcheck(trial: Trial, sample: Sample) -> Finding:
    """Run `torch.library.opcheck`. It does not test the mathematics; the other checks do."""
    if trial.overload is None:
        is_callable = trial.candidate.rung == PLAIN_CALLABLE
        hint = "register it with torch.library.custom_op" if is_callable else "annotate parameters: x: torch.Tensor"
        raise Skipped("it is not an operator of torch.ops", hint=hint)
    call = tracked(fresh(sample))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # opcheck itself causes warnings
            torch.library.opcheck(trial.overload, call.args, dict(call.kwargs))
    except Exception as error:
        raise Fault(one_line(error)) from error
    return Finding()

"""Values: the outputs match the reference in float64 about as closely as eager's do."""

from __future__ import annotations

from functools import partial

from opwright.checking.accuracy import Accuracy, Comparison
from opwright.checking.calls import exact, fresh, outputs_of
from opwright.checking.finding import Finding, by_the_reference
from opwright.checking.roundings import random_roundings
from opwright.checking.trial import Trial
from opwright.samples import Sample


def values(trial: Trial, sample: Sample) -> Finding:
    """Compare the outputs."""
    accuracy = value_accuracy(trial, sample)
    return Finding("", accuracy.error, accuracy.eager_error)


def value_accuracy(trial: Trial, sample: Sample) -> Accuracy:
    """Compare the outputs, and the inputs after the call.

    Raises:
        Fault: One of them differs from the reference's.
        Skipped: The reference raises.
    """
    eager, true, own = fresh(sample), exact(sample), fresh(sample)
    with by_the_reference():
        eager_outputs, true_outputs = outputs_of(trial.reference, eager), outputs_of(trial.reference, true)
    own_outputs = outputs_of(trial.candidate, own)
    inputs = sample.tensors()
    rounded = partial(random_roundings, lambda: outputs_of(trial.reference, exact(sample)))
    accuracy = Comparison("output", own_outputs, eager_outputs, true_outputs, inputs, rounded).judge()
    Comparison("after the call, input", own.tensors(), eager.tensors(), true.tensors(), inputs).judge()
    return accuracy

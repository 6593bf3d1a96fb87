"""Edges: for sizes 0 and 1, the operator returns or raises what the reference does."""

from __future__ import annotations

from opwright.checking.calls import fresh, outputs_of
from opwright.checking.checks.gradients import gradient_accuracy
from opwright.checking.checks.refusals import demand_refusal
from opwright.checking.checks.values import value_accuracy
from opwright.checking.finding import Finding, Skipped, one_line
from opwright.checking.trial import Trial
from opwright.samples import Sample


def edges(trial: Trial, sample: Sample) -> Finding:
    """Compare shape, dtype, values and gradients, or the exception."""
    try:
        outputs_of(trial.reference, fresh(sample))
    except Exception as expected:
        demand_refusal(trial, sample, expected)
        return Finding(f"raises, as the reference does: {one_line(expected)}")
    accuracy = value_accuracy(trial, sample)
    try:
        accuracy = accuracy.worst(gradient_accuracy(trial, sample))
    except Skipped as reason:
        return Finding(f"values only: {reason}", accuracy.error, accuracy.eager_error)
    return Finding("", accuracy.error, accuracy.eager_error)

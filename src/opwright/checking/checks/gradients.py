"""Gradients: for random cotangents they match the reference in float64 about as closely as eager's do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import torch

from opwright.checking.accuracy import Accuracy, Comparison
from opwright.checking.calls import exact, fresh, gradients_of, outputs_of, random_gradients, tracked, widened
from opwright.checking.finding import Finding, by_the_reference
from opwright.checking.roundings import random_roundings
from opwright.checking.trial import Trial
from opwright.samples import Sample


def gradients(trial: Trial, sample: Sample) -> Finding:
    """Compare the gradients of all outputs with respect to all inputs."""
    accuracy = gradient_accuracy(trial, sample)
    return Finding("", accuracy.error, accuracy.eager_error)


def gradient_accuracy(
    trial: Trial, sample: Sample, *, wanted: Collection[int] | None = None, used: Collection[int] | None = None
) -> Accuracy:
    """Compare gradients.

    Args:
        trial: The candidate and its reference.
        sample: The call to differentiate.
        wanted: Positions of the tensors of the sample that require a gradient; None for all that can.
        used: Positions of the outputs to differentiate; None for all.

    Raises:
        Fault: A gradient differs from the reference's.
        Skipped: The reference cannot be differentiated this way.
    """
    eager, own = tracked(fresh(sample), wanted), tracked(fresh(sample), wanted)

    def in_double() -> list[torch.Tensor]:
        true = tracked(exact(sample), wanted)
        outputs = _chosen(outputs_of(trial.reference, true), used)
        return gradients_of(outputs, true, [widened(gradient) for gradient in cotangents])

    with by_the_reference():
        eager_outputs = _chosen(outputs_of(trial.reference, eager), used)
        cotangents = random_gradients(eager_outputs)
        expected = gradients_of(eager_outputs, eager, cotangents)
        truth = in_double()
    actual = gradients_of(_chosen(outputs_of(trial.candidate, own), used), own, cotangents)
    inputs, rounded = [*sample.tensors(), *cotangents], partial(random_roundings, in_double)
    return Comparison("gradient", actual, expected, truth, inputs, rounded).judge()


def _chosen(outputs: Sequence[torch.Tensor], used: Collection[int] | None) -> list[torch.Tensor]:
    return [output for index, output in enumerate(outputs) if used is None or index in used]

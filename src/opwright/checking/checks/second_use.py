"""Second use: a tensor passed twice, gradients of some inputs only, two backward passes, an unused output."""

from __future__ import annotations

from itertools import combinations

import torch

from opwright.checking.accuracy import Comparison
from opwright.checking.calls import differentiable, fresh, outputs_of, random_gradients, reached, tracked, widened
from opwright.checking.checks.gradients import gradient_accuracy
from opwright.checking.checks.values import value_accuracy
from opwright.checking.finding import Finding, Skipped, by_the_reference, fault_within
from opwright.checking.trial import Trial
from opwright.samples import Sample


def same_tensor_twice(trial: Trial, sample: Sample) -> Finding:
    """Pass one tensor for both inputs of each pair that has the same shape and dtype."""
    tensors = sample.tensors()
    alike = [
        (first, second)
        for first, second in combinations(range(len(tensors)), 2)
        if tensors[first].shape == tensors[second].shape and tensors[first].dtype == tensors[second].dtype
    ]
    if not alike:
        raise Skipped("no two inputs have the same shape and dtype")
    for first, second in alike:
        doubled = sample.with_tensors([tensors[first if index == second else index] for index in range(len(tensors))])
        value_accuracy(trial, doubled)
        _accuracy_if_told(trial, doubled)
    return Finding(f"{len(alike)} pairs")


def some_gradients(trial: Trial, sample: Sample) -> Finding:
    """Request the gradient of each input alone, and of all inputs but that one."""
    able = [index for index, tensor in enumerate(sample.tensors()) if differentiable(tensor)]
    if len(able) < 2:
        raise Skipped("fewer than two inputs can require a gradient")
    subsets = {frozenset({index}) for index in able} | {frozenset(able) - {index} for index in able}
    for wanted in sorted(subsets, key=sorted):
        with fault_within(f"gradients for inputs {sorted(wanted)} only"):
            _accuracy_if_told(trial, sample, wanted=wanted)
    return Finding(f"{len(subsets)} sets of inputs")


def two_backward_passes(trial: Trial, sample: Sample) -> Finding:
    """Run backward twice through one graph: the gradients add up to twice the first."""
    with by_the_reference():
        cotangents = random_gradients(outputs_of(trial.reference, tracked(fresh(sample))))
    leaves = tracked(fresh(sample))
    outputs = reached(outputs_of(trial.candidate, leaves))
    inputs = [tensor for tensor in leaves.tensors() if tensor.requires_grad]
    torch.autograd.backward(outputs, cotangents, retain_graph=True)
    twice = [2 * _gradient(tensor) for tensor in inputs]
    torch.autograd.backward(outputs, cotangents)
    accumulated = [_gradient(tensor) for tensor in inputs]
    exact = [widened(tensor) for tensor in twice]
    Comparison("accumulated gradient", accumulated, twice, exact, inputs).judge()
    return Finding()


def unused_output(trial: Trial, sample: Sample) -> Finding:
    """Differentiate each output alone, so that the others get no gradient."""
    with by_the_reference():
        count = len(outputs_of(trial.reference, fresh(sample)))
    if count < 2:
        raise Skipped("there is one output only")
    for used in range(count):
        with fault_within(f"only output {used} used"):
            _accuracy_if_told(trial, sample, used={used})
    return Finding(f"{count} outputs")


def _accuracy_if_told(
    trial: Trial, sample: Sample, *, wanted: frozenset[int] | None = None, used: set[int] | None = None
) -> None:
    try:
        gradient_accuracy(trial, sample, wanted=wanted, used=used)
    except Skipped:
        return


def _gradient(tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(tensor) if tensor.grad is None else tensor.grad.clone()

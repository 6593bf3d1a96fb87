"""Forward mode: tangents are right, or the call raises; PyTorch's default for a custom operator is silent zeros."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from opwright.checking.accuracy import Comparison
from opwright.checking.calls import differentiable, fresh, outputs_of, random_tangents, widened
from opwright.checking.finding import Finding, Skipped, by_the_reference, one_line
from opwright.checking.trial import Trial
from opwright.samples import Sample


def forward_mode(trial: Trial, sample: Sample) -> Finding:
    """Compare the tangents of the outputs for random tangents of the inputs."""
    inputs = [tensor for tensor in sample.tensors() if differentiable(tensor)]
    if not inputs:
        raise Skipped("no input is differentiable")
    tangents = random_tangents(inputs)
    with by_the_reference():
        outputs, expected = _outputs_and_tangents(trial.reference, sample, tangents)
    try:
        actual = _outputs_and_tangents(trial.candidate, sample, tangents)[1]
    except (RuntimeError, NotImplementedError) as refusal:
        hint = "implement its forward mode, if it is to have one"
        raise Skipped(f"raises in forward mode: {one_line(refusal)}", hint=hint) from refusal
    # PyTorch's tangent of a number of float32 times a Python float is of float64; that of another may be as it should.
    odd = {k: output.dtype for k, output in enumerate(outputs) if expected[k].dtype is not output.dtype}
    expected, actual = ([t.to(odd.get(k, t.dtype)) for k, t in enumerate(found)] for found in (expected, actual))
    exact = [widened(tensor) for tensor in expected]
    Comparison("tangent of output", actual, expected, exact, [*inputs, *tangents]).judge()
    return Finding()


def _outputs_and_tangents(
    function: Callable[..., Any], sample: Sample, tangents: list[torch.Tensor]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    primals = fresh(sample).tensors()
    positions = [index for index, tensor in enumerate(primals) if differentiable(tensor)]

    def of_differentiable(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        replaced = dict(zip(positions, tensors, strict=True))
        arguments = [replaced.get(index, tensor) for index, tensor in enumerate(primals)]
        return tuple(outputs_of(function, sample.with_tensors(arguments)))

    chosen = tuple(primals[index] for index in positions)
    with warnings.catch_warnings():
        # On first use PyTorch scripts its decompositions for forward mode, and warns that scripting is deprecated.
        warnings.filterwarnings("ignore", message=".*torch.jit.script", category=DeprecationWarning)
        found = torch.func.jvp(of_differentiable, chosen, tuple(tangents))
    return list(found[0]), list(found[1])

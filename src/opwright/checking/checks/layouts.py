"""Layouts: strides, offsets and overlaps of inputs and cotangents do not change the result.

Autograd produces cotangents that are expanded (from a sum, stride 0), transposed, or slices (from a cat).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from opwright.checking.accuracy import Comparison
from opwright.checking.calls import fresh, gradients_of, outputs_of, random_gradients, tracked, widened
from opwright.checking.finding import Finding, Skipped, by_the_reference, fault_within
from opwright.checking.trial import Trial
from opwright.samples import Sample

Arrange = Callable[[torch.Tensor], torch.Tensor]
_GAP = 99


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Store the last axis first."""
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def sliced(tensor: torch.Tensor) -> torch.Tensor:
    """Store every second element, after an offset."""
    storage = tensor.new_full((*tensor.shape[:-1], 2 * tensor.shape[-1] + 1), _GAP)
    view = storage[..., 1::2]
    return view.copy_(tensor)


def expanded_first(tensor: torch.Tensor) -> torch.Tensor:
    """Repeat the first row along the first axis, with stride 0."""
    return tensor[:1].expand(tensor.shape)


def expanded_last(tensor: torch.Tensor) -> torch.Tensor:
    """Repeat the first column along the last axis, with stride 0."""
    return tensor[..., :1].expand(tensor.shape)


def slice_of_cat(tensor: torch.Tensor) -> torch.Tensor:
    """Store it as the second half of a concatenation along the last axis."""
    length = tensor.shape[-1]
    return torch.cat([torch.full_like(tensor, _GAP), tensor], dim=-1).narrow(-1, length, length)


def from_sum(tensor: torch.Tensor) -> torch.Tensor:
    """Expand a single element over all axes, as the gradient of `sum` is."""
    return tensor.new_ones(()).expand(tensor.shape)


INPUT_LAYOUTS: Mapping[str, Arrange] = {
    "transposed": transposed,
    "sliced": sliced,
    "expanded along the first axis": expanded_first,
    "expanded along the last axis": expanded_last,
}
GRADIENT_LAYOUTS: Mapping[str, Arrange] = {
    "from a sum": from_sum,
    "transposed": transposed,
    "a slice of a cat": slice_of_cat,
}


def layouts(trial: Trial, sample: Sample) -> Finding:
    """Compare each layout of each tensor with the contiguous call of the same values."""
    with by_the_reference():
        outputs = outputs_of(trial.reference, tracked(fresh(sample)))
    try:
        cotangents = random_gradients(outputs)
    except Skipped:
        cotangents = []
    count = 0
    for what, arranged, gradients in _arrangements(fresh(sample), cotangents):
        count += 1
        with fault_within(what):
            _same_as_contiguous(trial, arranged, gradients)
    if not count:
        raise Skipped("no tensor has an axis to rearrange", hint="give samples= a tensor with an axis")
    return Finding(f"{count} layouts")


def _arrangements(sample: Sample, cotangents: list[torch.Tensor]) -> Iterator[tuple[str, Sample, list[torch.Tensor]]]:
    inputs = sample.tensors()
    for name, arrange in INPUT_LAYOUTS.items():
        for index, tensor in enumerate(inputs):
            if tensor.dim():
                yield f"input {index} {name}", sample.with_tensors(_replaced(inputs, index, arrange)), cotangents
    for name, arrange in GRADIENT_LAYOUTS.items():
        for index, gradient in enumerate(cotangents):
            if gradient.dim():
                yield f"cotangent {index} {name}", sample, _replaced(cotangents, index, arrange)


def _replaced(tensors: Sequence[torch.Tensor], index: int, arrange: Arrange) -> list[torch.Tensor]:
    return [*tensors[:index], arrange(tensors[index]), *tensors[index + 1 :]]


def _same_as_contiguous(trial: Trial, sample: Sample, cotangents: list[torch.Tensor]) -> None:
    compact = [gradient.clone(memory_format=torch.contiguous_format) for gradient in cotangents]
    plain = sample.map(lambda tensor: tensor.clone(memory_format=torch.contiguous_format))
    exact = [widened(tensor) for tensor in _results(trial.candidate, plain, compact)]
    with by_the_reference():  # whose results differ too where terms cancel, as in a norm's gradient of a sum
        eager = _results(trial.reference, sample, cotangents)
    inputs = [*sample.tensors(), *cotangents]
    Comparison("result", _results(trial.candidate, sample, cotangents), eager, exact, inputs).judge()


def _results(function: Callable[..., Any], sample: Sample, cotangents: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    leaves = tracked(sample)
    outputs = outputs_of(function, leaves)
    gradients = gradients_of(outputs, leaves, cotangents) if cotangents else []
    return [*(output.detach() for output in outputs), *gradients]

"""Special values: for NaN, infinities, signed zeros, huge and tiny numbers, the results are eager's.

On a GPU they may be those that eager has on the processor: PyTorch's fused kernels for GPUs, such as that of
`rms_norm`, give NaN where the operations that they stand for do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import cycle, islice
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from opwright.checking.calls import fresh, is_here
from opwright.checking.checks.values import value_accuracy
from opwright.checking.finding import Fault, Finding, Skipped, fault_within
from opwright.checking.trial import Trial
from opwright.samples import Sample


def special_values(trial: Trial, sample: Sample) -> Finding:
    """Put each special value into one element of each input, then fill all inputs with special values."""
    count = 0
    for poisoned in _poisoned(sample):
        count += 1
        with fault_within(poisoned.name):
            _demand_values(trial, poisoned)
    if not count:
        raise Skipped("no input is of floating point")
    return Finding(f"{count} samples with special values")


def _demand_values(trial: Trial, sample: Sample) -> None:
    try:
        value_accuracy(trial, sample)
    except Fault:
        if is_here(sample) or not _agrees(replace(trial, reference=on_the_processor(trial.reference)), sample):
            raise


def _agrees(trial: Trial, sample: Sample) -> bool:
    try:
        value_accuracy(trial, sample)
    except (Fault, Skipped):  # or the reference cannot run there
        return False
    return True


def on_the_processor(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The reference, run on the processor, with results where the arguments are."""

    def run(*args: Any, **kwargs: Any) -> Any:
        sample = Sample(args, kwargs)
        there = sample.tensors()[0].device
        call = sample.with_tensors([tensor.cpu() for tensor in sample.tensors()])
        return tree_map_only(torch.Tensor, lambda tensor: tensor.to(there), reference(*call.args, **call.kwargs))

    return run


def special_numbers(dtype: torch.dtype) -> Mapping[str, float]:
    """List the special values of a floating-point dtype by name."""
    limits = torch.finfo(dtype)
    return {
        "NaN": float("nan"),
        "Inf": float("inf"),
        "-Inf": float("-inf"),
        "0": 0.0,
        "-0": -0.0,
        "huge": limits.max / 4,
        "-huge": -limits.max / 4,
        "tiny": limits.tiny,
        "-tiny": -limits.tiny,
    }


def _poisoned(sample: Sample) -> Iterator[Sample]:
    floating = [index for index, tensor in enumerate(sample.tensors()) if _takes_special(tensor)]
    for index in floating:
        for name, number in special_numbers(sample.tensors()[index].dtype).items():
            changed = fresh(sample)
            tensor = changed.tensors()[index]
            tensor.view(-1)[tensor.numel() // 2] = number
            yield Sample(changed.args, changed.kwargs, f"{name} in input {index}")
    if floating:
        changed = fresh(sample)
        for index in floating:
            _fill(changed.tensors()[index], shift=index)
        yield Sample(changed.args, changed.kwargs, "special values everywhere")


def _takes_special(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.numel() > 0


def _fill(tensor: torch.Tensor, shift: int) -> None:
    """Fill with all special values in turn; the shift pairs the values of two inputs differently."""
    numbers = islice(cycle(special_numbers(tensor.dtype).values()), shift, shift + tensor.numel())
    tensor.copy_(torch.tensor(list(numbers), dtype=tensor.dtype).view(tensor.shape))

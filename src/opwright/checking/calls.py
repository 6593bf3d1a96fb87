"""Calls: run a function on a sample, forward and backward, without touching the sample."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import torch

from opwright.checking.finding import Fault, Skipped
from opwright.samples import Sample, tensors_in

every_gradient = partial(torch.autograd.grad, allow_unused=True, materialize_grads=True)
"""`torch.autograd.grad` with respect to every input: zeros for unused ones."""


def is_here(sample: Sample) -> bool:
    """Whether all tensors of a sample are on the processor."""
    return all(tensor.device.type == "cpu" for tensor in sample.tensors())


def fresh(sample: Sample) -> Sample:
    """Copy the tensors, so that a call can change them."""
    return sample.map(lambda tensor: tensor.detach().clone())


def exact(sample: Sample) -> Sample:
    """Copy the tensors to float64 and complex128, from which the reference computes the "exact" result.

    The values stay as rounded by the sample's dtype. A sample in float64 has no wider dtype: its values are moved by
    one rounding, so that the reference's two results are as far apart as two right results may be.
    """
    return sample.map(lambda tensor: _nudged(widened(tensor)) if tensor.dtype == torch.float64 else widened(tensor))


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor to float64 or complex128; integers and booleans stay."""
    return tensor.detach().to(_widest(tensor.dtype), copy=True)


def _nudged(tensor: torch.Tensor) -> torch.Tensor:
    """Move float64 numbers to an adjacent one: equal numbers to the same one, and whole numbers not at all."""
    upwards = tensor.contiguous().view(torch.int64).bitwise_and(2).bool().view_as(tensor)
    towards = torch.where(upwards, torch.inf, -torch.inf).to(tensor.dtype)
    return torch.where(tensor.isfinite() & (tensor != tensor.round()), torch.nextafter(tensor, towards), tensor)


def tracked(sample: Sample, wanted: Collection[int] | None = None) -> Sample:
    """Make the tensors leaves that require gradients, in the layout they have.

    Args:
        sample: The sample; its tensors are shared, not copied.
        wanted: The positions, among the tensors, of those that will require a gradient; None for all that can.
    """
    leaves: dict[int, torch.Tensor] = {}
    for index, tensor in enumerate(sample.tensors()):
        wants = differentiable(tensor) and (wanted is None or index in wanted)
        leaves.setdefault(id(tensor), tensor.detach().requires_grad_(wants))
    return sample.map(lambda tensor: leaves[id(tensor)])


def differentiable(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor of this dtype can require a gradient."""
    return tensor.is_floating_point() or tensor.is_complex()


def outputs_of(function: Callable[..., Any], sample: Sample) -> list[torch.Tensor]:
    """Call the function and list the tensors it returns, in order."""
    return tensors_in(function(*sample.args, **sample.kwargs))


def reached(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """List the outputs that require a gradient."""
    return [output for output in outputs if output.requires_grad]


def random_gradients(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Draw a reproducible cotangent for each output that requires one.

    Raises:
        Skipped: None does.
    """
    if not reached(outputs):
        raise Skipped("no output of the reference is differentiable")
    return random_tangents(reached(outputs))


def random_tangents(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Draw reproducible normal numbers like each of the tensors."""
    generator = torch.Generator().manual_seed(len(tensors))
    return [
        torch.randn(tensor.shape, generator=generator, dtype=_widest(tensor.dtype)).to(tensor.device, tensor.dtype)
        for tensor in tensors
    ]


def gradients_of(
    outputs: Sequence[torch.Tensor], sample: Sample, cotangents: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Differentiate with respect to every tensor of the sample that requires a gradient; zeros for unused ones.

    Raises:
        Fault: The number of outputs that require a gradient is not the number of cotangents.
    """
    ends = reached(outputs)
    if len(ends) != len(cotangents):
        raise Fault(f"{len(ends)} of the used outputs require a gradient, but {len(cotangents)} of the reference's")
    inputs = [tensor for tensor in sample.tensors() if tensor.requires_grad]
    return list(every_gradient(ends, inputs, cotangents))


def _widest(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else dtype

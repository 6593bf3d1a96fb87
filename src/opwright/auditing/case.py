"""Case: a function and one sample, seen by the experiments of an audit as a function of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch.utils import _pytree as pytree

from opwright.auditing.options import Options
from opwright.checking.calls import differentiable, fresh
from opwright.checking.finding import Skipped
from opwright.samples import Sample

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Case:
    """A function and a call of it.

    Calling a case calls the function with new values for the tensors that can have gradients; the rest of the sample
    stays fixed. It returns all tensors among the results, then copies of the arguments that the function changes.

    Attributes:
        function: The subject, or the reference.
        sample: The call.
        sizes: The same call in other sizes, if the samples have any.
        changed: Positions, among the tensors of the sample, of those that the function changes.
        options: The options of the audit.
        overload: The subject as `torch.ops` has it, where it is known.
        reference: The reference of the function; the function itself where it is the reference.
    """

    function: Callable[..., Any]
    sample: Sample
    options: Options = field(default_factory=Options)
    sizes: tuple[Sample, ...] = ()
    changed: frozenset[int] = frozenset()
    overload: Any = None
    reference: Callable[..., Any] | None = None

    @cached_property
    def tensors(self) -> list[torch.Tensor]:
        """Copies of all tensors of the sample; none requires a gradient."""
        return fresh(self.sample).tensors()

    @cached_property
    def positions(self) -> list[int]:
        """Which of them can have a gradient."""
        return [index for index, tensor in enumerate(self.tensors) if differentiable(tensor)]

    @property
    def inputs(self) -> Tensors:
        """Copies of those that can have a gradient."""
        return tuple(self.tensors[index].clone() for index in self.positions)

    @property
    def leaves(self) -> Tensors:
        """The same, requiring gradients."""
        return tuple(tensor.requires_grad_() for tensor in self.inputs)

    def __call__(self, *inputs: torch.Tensor) -> Tensors:
        """Call the function."""
        given = list(self.tensors)
        for position, tensor in zip(self.positions, inputs, strict=True):
            given[position] = tensor
        for position in self.changed:
            given[position] = given[position].clone()
        results = self.call(given)
        return (*results, *(given[position] for position in sorted(self.changed)))

    def call(self, tensors: Sequence[torch.Tensor]) -> Tensors:
        """Call the function with all tensors of the sample replaced, and list the tensors it returns."""
        leaves, tree = self._tree
        remaining = iter(tensors)
        filled = [next(remaining) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(filled, tree)
        return tensors_of(self.function(*args, **kwargs))

    def floats(self, *inputs: torch.Tensor) -> Tensors:
        """Call the function, and leave out results that are integers or booleans."""
        return tuple(output for output in self(*inputs) if differentiable(output))

    def loss(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Reduce the results to one real number, whose derivatives of every order depend on every element."""
        return loss_of(self.floats(*inputs))

    @cached_property
    def outputs(self) -> Tensors:
        """The results for the sample, with gradients recorded."""
        return self(*self.leaves)

    def demand_gradients(self) -> None:
        """Refuse where there is nothing to differentiate.

        Raises:
            Skipped: No input can have a gradient, or no result has one.
        """
        if not self.positions:
            raise Skipped("no input can have a gradient")
        if not any(output.requires_grad for output in self.outputs):
            raise Skipped("no result of the reference has a gradient")

    @cached_property
    def _tree(self) -> tuple[list[Any], pytree.TreeSpec]:
        return pytree.tree_flatten((self.sample.args, dict(self.sample.kwargs)))


def tensors_of(results: Any) -> Tensors:
    """List the tensors in nested containers."""
    return tuple(leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor))


def loss_of(outputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """Add up all elements with different weights, and their squares, so that gradients depend on the inputs."""
    if not outputs:
        raise Skipped("no result can be differentiated")
    return sum((_weighed(output) for output in outputs), start=torch.zeros(()))


def weights_like(tensor: torch.Tensor) -> torch.Tensor:
    """Reproducible real numbers between -1 and 1, one for each element."""
    kind = torch.empty(0, dtype=tensor.dtype).real.dtype if tensor.dtype.is_complex else tensor.dtype
    return torch.cos(torch.arange(tensor.numel(), dtype=kind, device=tensor.device)).reshape(tensor.shape)


def _weighed(output: torch.Tensor) -> torch.Tensor:
    if not output.is_complex():
        return (weights_like(output) * output + output * output / 2).sum()
    return _weighed(output.real) + _weighed(output.imag) / 2

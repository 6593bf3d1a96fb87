"""Calls with tensors that hold others: an operator runs on what is inside, and the type wraps the results.

The types are wrappers of `opwright.tensors`. Other subclasses see the operations of the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import Function

from opwright.binding.autograd.derived_node import GradientsOf, Made, gradients, keep
from opwright.binding.autograd.redraw import Draw, noting_draws
from opwright.binding.environment import is_overheard
from opwright.binding.returned import Returned
from opwright.binding.serving.listening import is_heard, tell
from opwright.tracing.torch_hooks.spread import has_spread


class AsWritten(Exception):
    """The operations of the reference serve: a result lies in the memory of an argument, or a type knows only these."""


class RunsInside:
    """A mixin for types of tensors that hold others."""

    __slots__ = ()

    @classmethod
    def run_inside(cls, operator: Callable[..., Any], name: str, args: Sequence[Any]) -> Any:
        """Run an operator on what is inside of the arguments, by the rule that the type has for its name.

        Args:
            operator: Called with what is inside.
            name: "namespace::name".
            args: The arguments, in order; autograd has been dealt with.

        Returns:
            The results; NotImplemented if the type does not know another type among the arguments.

        Raises:
            AsWritten: If a result is not in memory of its own, or the type has no rule for operators.
        """
        raise NotImplementedError


def insides(wrapper: Any) -> list[torch.Tensor]:
    """The tensors that a tensor holds."""
    names, _ = wrapper.__tensor_flatten__()
    return [getattr(wrapper, name) for name in names]


def kinds_inside(args: Sequence[Any]) -> tuple[type[RunsInside], ...]:
    """The types among the arguments that hold others, as torch asks types: subclasses first, then left to right."""
    kinds: list[type[RunsInside]] = []
    for kind in dict.fromkeys(type(arg) for arg in args if isinstance(arg, RunsInside)):
        place = next((place for place, other in enumerate(kinds) if issubclass(kind, other)), len(kinds))
        kinds.insert(place, kind)
    return tuple(kinds)


def serve_inside(
    operator: Callable[..., Any],
    name: str,
    gradients_of: GradientsOf,
    args: Sequence[Any],
    sharded: Callable[[Sequence[Any]], Any],
) -> Any:
    """Serve a call with such types among the arguments; its gradients are operators, of the same types.

    Args:
        operator: What is called on what is inside.
        name: "namespace::name".
        gradients_of: The operators of its gradients.
        args: The arguments, in order.
        sharded: Serves calls with DTensors.

    Returns:
        The result; NotImplemented if there is no such type, if a mode must see the operations of the reference, and if
        these are to serve.

    Raises:
        TypeError: If no type knows the others.
    """
    if is_heard():
        return tell(name.split("::")[1], operator, tuple(args), {})
    if has_spread(args):
        return sharded(args)
    if is_overheard() or not any(isinstance(arg, RunsInside) for arg in args):
        return NotImplemented
    try:
        return _record(_Call(operator, name, gradients_of), args)
    except AsWritten:
        return NotImplemented


def _record(call: _Call, args: Sequence[Any]) -> Any:
    if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        outputs = _apply(call, *args)
        assert call.returned is not None
        return call.returned.rebuilt(outputs)
    return call.run(*args)


@dataclass(slots=True)
class _Call:
    operator: Callable[..., Any]
    name: str
    gradients_of: GradientsOf
    returned: Returned | None = None

    def run(self, *args: Any) -> Any:
        kinds = kinds_inside(args)
        for kind in kinds:
            if (result := kind.run_inside(self.operator, self.name, args)) is not NotImplemented:
                return result
        names = ", ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"no implementation found for {self.name} on types that implement it: {names}")

    def run_to_record(self, args: Sequence[Any]) -> tuple[Returned, Draw | None]:
        found, draw = noting_draws(self.run, *args)
        self.returned = Returned(found)
        return self.returned, draw


class _Node(Function):
    @staticmethod
    def forward(ctx: Any, call: _Call, *args: Any) -> Any:
        returned, draw = call.run_to_record(args)
        return keep(ctx, Made(call.gradients_of, returned.places, args, tuple(returned.tensors), draw))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        """Call the operator of the gradients."""
        return gradients(ctx, cotangents)


_apply: Callable[..., Any] = super(Function, _Node).apply

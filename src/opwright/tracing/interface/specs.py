"""Specs: what tracing needs to know about the arguments of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.tracing.interface.orders import Order, orders_of


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor argument."""

    name: str
    dtype: torch.dtype
    sizes: tuple[int, ...]
    requires_grad: bool = False
    device: str = "cpu"
    digest: str = ""
    """The digest of a value that the reference would compute and that is given here; empty for an ordinary argument."""
    is_static: bool = False
    """Whether its sizes are constants in the trace, which then holds for these sizes alone."""
    order: Order = ()
    """The order of its dimensions in memory, outermost first; () as written."""
    expanded: tuple[int, ...] = ()
    """Dimensions along which all its elements are in one place; only told where a tensor of the call has an order."""


@dataclass(frozen=True, slots=True)
class ConstantSpec:
    """An argument that the graph is specialised to: a Python number, a string or None."""

    name: str
    value: float | int | bool | str | None


@dataclass(frozen=True, slots=True)
class NumberSpec:
    """A Python number that changes from call to call; kernels take it as a tensor without dimensions."""

    name: str
    value: float | int

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that holds all Python floats, or all Python ints of 64 bits."""
        return torch.int64 if isinstance(self.value, int) else torch.float64


ArgumentSpec = TensorSpec | ConstantSpec | NumberSpec


def describe(
    names: Sequence[str], arguments: Sequence[Any], *, gradients: bool, numbers: Sequence[int] = ()
) -> tuple[ArgumentSpec, ...]:
    """Describe real arguments.

    Args:
        names: Their names.
        arguments: The arguments of a call.
        gradients: Whether to record which of them require gradients.
        numbers: Positions of tensors that stand for Python numbers.
    """
    orders = {position: lies for position, *lies in orders_of(arguments)}
    return tuple(
        NumberSpec(name, value.item())
        if position in numbers
        else _describe(name, value, gradients, *orders.get(position, ((), ())))
        for position, (name, value) in enumerate(zip(names, arguments, strict=True))
    )


def _describe(name: str, value: Any, gradients: bool, order: Order, expanded: tuple[int, ...]) -> ArgumentSpec:
    if not isinstance(value, torch.Tensor):
        return ConstantSpec(name, value)
    requires_grad = gradients and value.requires_grad
    sizes, device = tuple(value.shape), value.device.type
    return TensorSpec(name, value.dtype, sizes, requires_grad, device, order=order, expanded=expanded)


def requiring_gradients(arguments: Sequence[Any]) -> list[Any]:
    """The same arguments, where every floating tensor requires a gradient."""
    return [
        a.detach().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in arguments
    ]

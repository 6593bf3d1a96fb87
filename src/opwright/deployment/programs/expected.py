"""What eager returns, and how far a result may be from it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from opwright.checking.accuracy import as_real
from opwright.checking.tolerance import reduction_length, tolerance
from opwright.errors import DeploymentUnsupported


class _Overhearing(TorchDispatchMode):
    """A mode that changes nothing: operators under one run their references."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


def run_eagerly(module: nn.Module, args: tuple[Any, ...]) -> tuple[tuple[torch.Tensor, ...], tuple[float, ...]]:
    """Run a copy of a module on copies of its arguments, as it is and with kernels out of the way.

    Returns:
        The results, flat, of the references; and for each how much another result may differ: twice the error that
        eager itself has against float64, and what rounding may cause (`tolerance`).

    Raises:
        DeploymentUnsupported: If it returns something else than tensors.
    """
    _run(module, args)  # operators without annotations are at the dispatcher once they have been called
    with _Overhearing():  # type: ignore[no-untyped-call]  # torch's
        eager = _run(module, args)
        exact = _run_exactly(module, args) or eager
    for leaf in eager:
        if not isinstance(leaf, torch.Tensor):
            raise DeploymentUnsupported(
                f"the model returns {leaf!r}, and programs return tensors", hint="return tensors alone"
            )
    inputs = list(tree_leaves(args)) + list(module.parameters())
    return tuple(eager), tuple(_allowed(*pair, inputs) for pair in zip(eager, exact, strict=True))


def _run(module: nn.Module, args: tuple[Any, ...]) -> list[Any]:
    with torch.no_grad():
        given = tree_map(torch.clone, args)
        return [each.clone() if isinstance(each, torch.Tensor) else each for each in tree_leaves(module(*given))]


def _run_exactly(module: nn.Module, args: tuple[Any, ...]) -> list[Any] | None:
    """The same in float64; None if the module cannot run so."""
    try:
        return _run(copy.deepcopy(module).double(), tree_map(_widened, args))
    except Exception:  # a module that asks for a dtype
        return None


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor


def _allowed(eager: torch.Tensor, exact: torch.Tensor, inputs: Sequence[torch.Tensor]) -> float:
    if not (eager.is_floating_point() or eager.is_complex()) or not eager.numel():
        return 0.0
    mine, true = as_real(eager), as_real(exact).double()
    numbers = mine.isfinite() & true.isfinite()
    scale = float(true[numbers].abs().max()) if numbers.any() else 1.0
    error = float((mine.double() - true)[numbers].abs().max()) if numbers.any() else 0.0
    return 2 * error + tolerance(mine.dtype, reduction_length(list(inputs), eager)) * scale

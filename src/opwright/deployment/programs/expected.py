"""What eager returns, and how far a result may be from it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from opwright.checking.accuracy import as_real
from opwright.checking.tolerance import reduction_length, tolerance
from opwright.errors import DeploymentUnsupported
from opwright.operators.registry import at_dispatcher

_Run = Callable[[nn.Module, tuple[Any, ...]], list[Any]]


class _ByReferences(TorchDispatchMode):
    """Runs operators as written: under a mode they do so themselves, but not where they are called by their names."""

    supports_higher_order_operators = True  # such as torch.cond

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = at_dispatcher(function)
        if found is None:
            return function(*args, **(kwargs or {}))
        with self:  # what it calls too
            return found.signature.positional(found.operator.reference)(*found.signature.bind(args, kwargs or {}))


def run_eagerly(module: nn.Module, args: tuple[Any, ...]) -> tuple[tuple[torch.Tensor, ...], tuple[float, ...]]:
    """Run a copy of a module on copies of its arguments, as it is and with kernels out of the way.

    Returns:
        The results, flat, of the references; and for each how much another result may differ: twice the error that
        eager itself has against float64, and what rounding may cause (`tolerance`).

    Raises:
        DeploymentUnsupported: If it returns something else than tensors, or something else at every call.
    """
    module = _copied(module)
    run = _run if _runs_without_gradients(module, args) else _run_recording  # an operator is at the dispatcher now
    with _references(run, module, args):
        eager, again = run(module, args), run(module, args)
        exact = _run_exactly(run, module, args) or eager
    for leaf in eager:
        if not isinstance(leaf, torch.Tensor):
            raise DeploymentUnsupported(
                f"the model returns {leaf!r}, and programs return tensors", hint="return tensors alone"
            )
    inputs = list(tree_leaves(args)) + list(module.parameters())
    if not all(_agree(one, other, _rounding(one, one, inputs)) for one, other in zip(eager, again, strict=True)):
        raise DeploymentUnsupported(
            "the model returns something else when it is called again",
            hint="call model.eval() first; programs keep no state and draw no random numbers",
        )
    return tuple(eager), tuple(_allowed(*pair, inputs) for pair in zip(eager, exact, strict=True))


def _references(run: _Run, module: nn.Module, args: tuple[Any, ...]) -> AbstractContextManager[Any]:
    """A mode for them, unless the model has what runs under no mode: `torch.cond` compiles itself."""
    try:
        with _ByReferences():  # type: ignore[no-untyped-call]  # torch's
            run(module, args)
    except Exception:
        return nullcontext()
    return _ByReferences()  # type: ignore[no-untyped-call]  # torch's


def _copied(module: nn.Module) -> nn.Module:
    """A copy, whose state may change."""
    try:
        return copy.deepcopy(module)
    except Exception:  # a module that holds what cannot be copied
        return module


def _agree(one: torch.Tensor, other: torch.Tensor, allowed: float) -> bool:
    """Whether two results differ by no more than that."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other = (as_real(each).double() for each in (one, other))
    return bool(torch.isclose(one, other, rtol=0, atol=allowed, equal_nan=True).all())


def _runs_without_gradients(module: nn.Module, args: tuple[Any, ...]) -> bool:
    """Whether it does; a model that takes gradients in its forward needs them recorded."""
    try:
        _run(module, args)
    except Exception:
        _run_recording(module, args)
        return False
    return True


def _run(module: nn.Module, args: tuple[Any, ...]) -> list[Any]:
    with torch.no_grad():
        return _run_recording(module, args)


def _run_recording(module: nn.Module, args: tuple[Any, ...]) -> list[Any]:
    returned = tree_leaves(module(*tree_map(torch.clone, args)))
    return [each.detach().clone() if isinstance(each, torch.Tensor) else each for each in returned]


def _run_exactly(run: _Run, module: nn.Module, args: tuple[Any, ...]) -> list[Any] | None:
    """The same in float64; None if the module cannot run so."""
    try:
        return run(copy.deepcopy(module).double(), tree_map(_widened, args))
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
    error = float((mine.double() - true)[numbers].abs().max()) if numbers.any() else 0.0
    return 2 * error + _rounding(eager, exact, inputs)


def _rounding(eager: torch.Tensor, exact: torch.Tensor, inputs: Sequence[torch.Tensor]) -> float:
    """How much rounding may change a result."""
    if not (eager.is_floating_point() or eager.is_complex()):
        return 0.0
    mine, true = as_real(eager), as_real(exact).double()
    numbers = mine.isfinite() & true.isfinite()
    scale = float(true[numbers].abs().max()) if numbers.any() else 1.0
    return tolerance(mine.dtype, reduction_length(list(inputs), eager)) * scale

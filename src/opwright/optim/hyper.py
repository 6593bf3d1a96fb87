"""Hyper-parameters: read, compared, and refused in PyTorch's words."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from opwright.optim.definition import Definition

# How torch.optim calls what must not be negative.
_NOT_NEGATIVE = {
    "lr": "learning rate",
    "eps": "epsilon value",
    "weight_decay": "weight_decay value",
    "momentum": "momentum value",
    "momentum_decay": "momentum_decay value",
    "rho": "rho value",
    "alpha": "alpha value",
    "lr_decay": "lr_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
}

_IMPLEMENTATIONS = ("foreach", "fused", "capturable", "differentiable")


def check_hyper(hyper: Mapping[str, Any]) -> None:
    """Refuse hyper-parameters as torch.optim does.

    Raises:
        ValueError: If a rate is negative, or a decay rate is not in [0, 1).
    """
    for name, words in _NOT_NEGATIVE.items():
        value = hyper.get(name)
        if isinstance(value, torch.Tensor) and value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")
        is_number = isinstance(value, (int, float, complex, torch.Tensor)) or hasattr(value, "__array__")
        if is_number:
            refuse_below(0.0, value, f"Invalid {words}")
    for position, beta in enumerate(hyper.get("betas") or ()):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {position}: {beta}")


def refuse_below(least: float, value: Any, words: str) -> None:
    """Refuse a number below the least one, and NaN.

    Raises:
        ValueError: With these words and the number.
    """
    if not least <= value:  # in this order, so that the TypeError for complex numbers has PyTorch's words
        raise ValueError(f"{words}: {value}")


def implementation(definition: Definition, hyper: dict[str, Any]) -> dict[str, Any]:
    """Take out of hyper-parameters what chooses between torch.optim's own implementations, which changes nothing here.

    Args:
        definition: The update; the optimizer of the same name in torch.optim says which arguments there are.
        hyper: The arguments by name, of which these are removed.

    Raises:
        RuntimeError: If they do not go together.
    """
    theirs = getattr(torch.optim, definition.name, None)
    known = inspect.signature(theirs).parameters if isinstance(theirs, type) else {}
    chosen = {
        name: hyper.pop(name)
        for name in _IMPLEMENTATIONS
        if name in known and name not in definition.hyper and name in hyper
    }
    if chosen.get("fused") and chosen.get("foreach"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    return chosen


def by_name(optimizer: str, definition: Definition, given: Sequence[Any], hyper: Mapping[str, Any]) -> dict[str, Any]:
    """Hyper-parameters by name, refused as Python refuses arguments."""
    names = list(definition.hyper)
    if len(given) > len(names):
        raise TypeError(
            f"{optimizer}.__init__() takes at most {len(names) + 2} positional arguments, not {len(given) + 2}"
        )
    made = dict(zip(names, given, strict=False))
    for name, value in hyper.items():
        if name not in definition.hyper:
            raise TypeError(f"{optimizer}.__init__() got an unexpected keyword argument '{name}'")
        if name in made:
            raise TypeError(f"{optimizer}.__init__() got multiple values for argument '{name}'")
        made[name] = value
    return made


def as_number(value: Any, default: Any) -> Any:
    """A hyper-parameter as the definition gets it: a tensor as a float, and an int where the default is a float."""
    if isinstance(value, (tuple, list)):
        defaults = default if isinstance(default, (tuple, list)) and len(default) == len(value) else (0.0,) * len(value)
        return tuple(map(as_number, value, defaults))
    if isinstance(value, torch.Tensor):
        return float(value)
    is_number = isinstance(value, int) or hasattr(value, "__array__")
    return float(value) if is_number and type(default) is float else value


def kept(value: Any) -> Any:
    """A hyper-parameter to compare with later, when a list may have other members."""
    return type(value)(map(kept, value)) if type(value) in (tuple, list) else value


def are_same(values: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    """Whether no hyper-parameter has changed; of tensors and arrays, this cannot be told."""
    if len(values) != len(before):
        return False
    for value in values:
        members = value if isinstance(value, (tuple, list)) else (value,)
        if any(not isinstance(member, float) and hasattr(member, "__array__") for member in members):
            return False
    return values == before

"""Examine: try a definition without data, before it touches a parameter."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch

from opwright.errors import OpwrightError, Place, UpdateRefused
from opwright.optim.definition import Definition
from opwright.optim.kinds import call, split_numbers
from opwright.tracing.interface.place import place_of

_NO_DATA = ("meta tensor", "Meta tensor", "_local_scalar_dense", "no data")
_META = torch.device("meta")


def examine(
    definition: Definition, param: torch.Tensor, hyper: Mapping[str, Any], undone: AbstractContextManager[object]
) -> None:
    """Run a definition on tensors like a parameter that have shapes and no values.

    Args:
        definition: What runs.
        param: The parameter.
        hyper: Its hyper-parameters.
        undone: Undoes what the definition changes outside.

    Raises:
        UpdateRefused: If it looks at values, changes its arguments, or returns something else than new values of the
            shapes of the parameter and the states.
    """
    if param.layout is not torch.strided:
        return
    plain = {name: _plain(value) for name, value in hyper.items()}
    split_numbers(definition, plain)  # which refuses names that are taken
    like = torch.empty_like(param.detach(), device=_META, memory_format=torch.contiguous_format)
    states = [_without_data(definition.start(name, param, plain)) for name in definition.states]
    given = [like, torch.empty_like(like), *states]
    versions = [None if tensor is None else tensor._version for tensor in given]
    try:
        with torch.no_grad(), undone:
            call(definition, like, given[1], states, 1.0, plain)
    except (OpwrightError, ValueError):
        raise
    except Exception as error:
        if not any(words in str(error) for words in _NO_DATA):
            return  # PyTorch says it again, with the tensors of the step
        raise UpdateRefused(
            f"{definition.name} looks at the values of a tensor to decide what to do next",
            place=_deepest(definition, error),
            hint="choose with torch.where",
        ) from error
    names = ("param", "grad", *definition.states)
    for name, tensor, version in zip(names, given, versions, strict=True):
        if tensor is not None and tensor._version != version:
            raise UpdateRefused(
                f"{definition.name} changes '{name}' in place",
                place=place_of(definition.function),
                hint="compute a new value and return it: `x = x.mul(0.9)`, not `x.mul_(0.9)`",
            )


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain, value))
    return float(value) if isinstance(value, torch.Tensor) else value


def _without_data(state: torch.Tensor | None) -> torch.Tensor | None:
    return None if state is None else torch.empty_like(state, device=_META)


def _deepest(definition: Definition, error: BaseException) -> Place:
    home = place_of(definition.function)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == home.file]
    return Place(home.file, (lines[-1] if lines else None) or home.line)

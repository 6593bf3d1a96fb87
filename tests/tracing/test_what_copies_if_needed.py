"""Every function of torch that gives its argument's memory in some layouts, and a copy in others, is known as such."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional

from opwright.tracing.recording.questions import may_copy

_SPACES = (torch.Tensor, torch, functional, torch.linalg, torch.special, torch.fft)
_FORMATS = ({"memory_format": torch.channels_last}, {"memory_format": torch.contiguous_format})
_ARGUMENTS: tuple[tuple[Any, ...], ...] = (
    *((), (0,), (-1,), (2, 8), (16,), (0, 1), ((16,),), ((0, 1),), (1, 0), (torch.float32,), (torch.zeros(16),)),
    *(([2, 2],), (0, (2, 2)), (2,), (0, 0), ((2, 8),), (torch.channels_last,), (torch.zeros(1, 3, 16),)),
)
_MATRICES: tuple[Callable[[], torch.Tensor], ...] = (
    lambda: torch.zeros(4, 4),
    lambda: torch.zeros(4, 4).t(),
    lambda: torch.zeros(4, 8)[:, ::2],
    lambda: torch.zeros(4).expand(4, 4),
)
_IMAGES: tuple[Callable[[], torch.Tensor], ...] = (
    lambda: torch.zeros(1, 3, 4, 4),
    lambda: torch.zeros(1, 4, 4, 3).permute(0, 3, 1, 2),
    lambda: torch.zeros(1, 3, 4, 4).transpose(2, 3),
)


def _functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for space in _SPACES:
        for name in sorted(dir(space)):
            function = getattr(space, name)
            if name[0] != "_" and name[-1] != "_" and callable(function) and not isinstance(function, type):
                yield name, function


def _shares(function: Callable[..., Any], tensor: torch.Tensor, args: Any, given: Any) -> bool | None:
    try:
        result = function(tensor, *args, **given)
    except Exception:  # most take other arguments
        return None
    if not isinstance(result, torch.Tensor) or result.layout is not torch.strided or not result.numel():
        return None
    return result.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()


@pytest.mark.nightly
def test_what_shares_memory_in_some_layouts_alone_is_known() -> None:
    found, unknown = set[str](), set[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in _functions():
            for args in _ARGUMENTS:
                for given in ({}, *(_FORMATS if not args or args == (torch.float32,) else ())):
                    for layouts in (_MATRICES, _IMAGES):
                        if {_shares(function, make(), args, given) for make in layouts} >= {True, False}:
                            found.add(name)
                            if not may_copy(function, (*args, *given.values())):
                                unknown.add(name)
    assert found >= {"contiguous", "reshape", "reshape_as", "flatten", "ravel", "to", "float", "type"}
    assert unknown == set()

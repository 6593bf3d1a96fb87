"""Libraries that find the framework of a tensor by its class, as einops does, and that of the tensors of a trace too.

Such a library asks each framework that it knows whether the tensor is one of its own, and remembers the answer for the
class. It tells PyTorch's by `isinstance`, so that the answer is the same for all classes.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator

import torch

_LOOKUPS = {"einops._backends": "get_backend"}  # functions of one tensor, by module


def _lookups() -> Iterator[types.FunctionType]:
    for module, name in _LOOKUPS.items():
        found = getattr(sys.modules.get(module), name, None)
        if isinstance(found, types.FunctionType):
            yield found


def finds_framework(code: types.CodeType) -> bool:
    """Whether it is the code of such a function, which gives the same for every tensor of PyTorch."""
    return any(code is lookup.__code__ for lookup in _lookups())


def introduce_tensors() -> None:
    """Let such libraries meet the classes of tensors before a trace, which then changes nothing that they remember."""
    for lookup in _lookups():
        _introduce_to(lookup)


@functools.cache
def _introduce_to(lookup: types.FunctionType) -> None:
    for tensor in _one_of_each_class():
        lookup(tensor)


def _one_of_each_class() -> Iterator[torch.Tensor]:
    from torch._subclasses.fake_tensor import FakeTensorMode  # not loaded before something is derived

    yield (plain := torch.empty(0))
    yield torch.nn.Parameter(plain)
    with FakeTensorMode():
        yield torch.empty(0)

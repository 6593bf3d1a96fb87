"""The levels of torch's function transforms: which is the innermost, what is in a tensor of it, and how to step below.

`torch.func` keeps a stack of levels, one for each transform that is under way. A tensor that takes part in one is
wrapped at its level. This file is the place for the private hooks behind that; tests/tracing/test_functorch.py guards
each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import torch
from torch._C import _functorch as hooks
from torch._functorch.pyfunctorch import (
    retrieve_all_functorch_interpreters,
    retrieve_current_functorch_interpreter,
)
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

are_active = torch._C._are_functorch_transforms_active
unwrap_dead = hooks.unwrap_if_dead
is_in_old_batch = hooks.is_legacy_batchedtensor  # of the `vmap` before `torch.func`, which gradcheck still uses
recording_at_one_level: Callable[[], Any] = enable_single_level_autograd_function


def is_forward_mode() -> bool:
    """Whether there is a level of dual tensors, and nobody has switched their tangents off."""
    return forward_ad._current_level >= 0 and torch._C._is_fwd_grad_enabled()


def is_dual(value: Any) -> bool:
    """Whether a value is a tensor with a tangent; of an old batch that is not known, so it may be."""
    if not isinstance(value, torch.Tensor):
        return False
    return is_in_old_batch(value) or forward_ad.unpack_dual(value).tangent is not None


def is_differentiating() -> bool:
    """Whether one of the transforms under way differentiates."""
    return any(interpreter.key().name in ("Grad", "Jvp") for interpreter in retrieve_all_functorch_interpreters())


class Transform(Enum):
    """What a level does."""

    GRAD = "grad"
    JVP = "jvp"
    VMAP = "vmap"
    FUNCTIONALIZE = "functionalize"


@dataclass(frozen=True, slots=True)
class Level:
    """A transform under way."""

    transform: Transform
    number: int
    _interpreter: Any

    @contextmanager
    def below(self) -> Iterator[None]:
        """Be below the level until the end of the block."""
        with self._interpreter.lower():
            yield

    @property
    def randomness(self) -> Literal["error", "different", "same"]:
        """What `torch.vmap` was told of random numbers."""
        told: Literal["error", "different", "same"] = self._interpreter.randomness()
        return told

    def has(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is wrapped at this level, to be differentiated."""
        return hooks.is_gradtrackingtensor(tensor) and hooks.maybe_get_level(tensor) == self.number

    def wrap(self, tensor: torch.Tensor) -> torch.Tensor:
        """Wrap a tensor from below, to be differentiated."""
        return hooks._wrap_for_grad(tensor, self.number)

    def unwrap(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor below; one that is not of this level is there already."""
        return hooks._unwrap_for_grad(tensor, self.number)

    def lift(self, tensor: torch.Tensor) -> torch.Tensor:
        """Wrap a tensor that is not of this level, as a constant."""
        lifted: torch.Tensor = self._interpreter._cptr.lift(tensor)
        return lifted

    def add_batch(self, tensor: torch.Tensor) -> torch.Tensor:
        """Hide the first dimension of a tensor from below: it is the batch."""
        return hooks._add_batch_dim(tensor, 0, self.number)

    def unbatched(self, tensor: torch.Tensor) -> tuple[torch.Tensor, int | None]:
        """The tensor below, and which of its dimensions is the batch; None if none is."""
        value, dimension = hooks._unwrap_batched(tensor, self.number)
        return value, dimension


def innermost() -> Level:
    """The level that sees an operation first; there must be one."""
    interpreter = retrieve_current_functorch_interpreter()
    return Level(Transform(interpreter.key().name.lower()), interpreter.level(), interpreter)

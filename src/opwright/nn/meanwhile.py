"""Calls left to a module as written where Python would compare what it reads: that takes longer than most forwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.utils._pytree import tree_flatten

from opwright.binding.variants.kinds import Key, call_of

_LONG_S = 2e-3  # a call and its backward pass compare five times


class Meanwhile:
    """Tells calls like an earlier one, for which kernels were made or refused, from those that are new.

    Attributes:
        is_long: Whether the last comparison took long.
    """

    def __init__(self) -> None:
        self.is_long = False
        self._met: set[Key] = set()

    @contextmanager
    def comparing(self) -> Iterator[None]:
        """Take the time of a comparison of states."""
        started = time.perf_counter()
        yield
        self.is_long = time.perf_counter() - started > _LONG_S

    def has_met(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_training: bool) -> bool:
        """Whether there was a call like this one before; a call with arguments that cannot be hashed is always new."""
        members, layout = tree_flatten((args, kwargs))
        kind = is_training, layout, call_of(members)
        try:
            known = kind in self._met
            self._met.add(kind)
        except TypeError:
            return False
        return known

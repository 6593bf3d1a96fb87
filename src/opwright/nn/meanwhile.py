"""Calls left to a module as written until C++ compares what it reads: Python takes longer than most forwards."""

from __future__ import annotations

from typing import Any

from torch.utils._pytree import tree_flatten

from opwright.binding.variants.kinds import Key, call_of


class Meanwhile:
    """Tells calls like an earlier one, for which kernels were made or refused, from those that are new."""

    def __init__(self) -> None:
        self._met: set[Key] = set()

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

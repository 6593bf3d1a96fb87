"""Arguments in containers: the operators of flat arguments that serve them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.utils._pytree import TreeSpec

from opwright.binding.fallbacks import Fallbacks
from opwright.binding.serving.mutating import MutatingServer
from opwright.binding.transforms.family import Family
from opwright.tracing.interface.flatten import Leaves, flatten, leaves_of
from opwright.tracing.interface.signature import Signature


class Flattens:
    """The part of an operator that lays out arguments flat."""

    _family: Family[Any]
    _functional: Any
    _mutated: tuple[int, ...]
    _positional: Callable[..., Any]
    _signature: Signature
    _fallbacks: Fallbacks

    def _flattened(self, args: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        """The operator that takes these arguments flat, which is this one if they are, and the flat arguments."""
        if self._functional is not None:
            return self._functional, args
        if self._signature.is_flat:
            return self, args
        leaves, layout = flatten(tuple(args))
        if self._mutated:
            return self._family.functional_flat(self._mutated, leaves, layout), leaves
        return self._family.flat(leaves, layout), leaves

    def _make_mutating(self, leaves: Leaves, layout: TreeSpec) -> MutatingServer:
        """What serves calls that change tensors in containers of a structure."""
        flat, changed = self._family.functional_flat(self._mutated, leaves, layout), leaves_of(self._mutated, leaves)
        return MutatingServer(self._positional, flat._signature, changed, lambda: flat.server, self._fallbacks)

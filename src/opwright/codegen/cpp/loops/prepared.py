"""Values that are computed once for a row, of what all its elements have in common: masks, divisors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace

from opwright.ir.expressions.expression import Expression
from opwright.ir.program import Binding, Gather, Kernel, Let
from opwright.ir.rows import row_axes, varies, varying_locals


class Preparing(ABC):
    """Rewrites the values of a kernel, and binds what they need before them.

    Args:
        kernel: Tells which values vary along a row.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._axes = {axis.name for axis in row_axes(kernel)}
        self._varying = varying_locals(kernel)
        self._new: list[Let] = []

    @abstractmethod
    def rewritten(self, value: Expression) -> Expression:
        """A value that uses prepared ones, which `prepare` has been told of."""

    def prepare(self, let: Let) -> None:
        """Have a value bound before the one that is being rewritten."""
        self._new.append(let)

    def applied(self, kernel: Kernel) -> Kernel:
        """A kernel with its values rewritten."""
        lets = tuple(let for binding in kernel.lets for let in self._bindings(binding))
        stores = []
        for store in kernel.stores:
            value = self.rewritten(store.value)
            lets += tuple(self._prepared())
            stores.append(replace(store, value=value))
        return replace(kernel, lets=lets, stores=tuple(stores))

    def varies(self, *values: Expression) -> bool:
        """Whether any of some values differs from element to element of a row."""
        return any(varies(value, self._axes, self._varying) for value in values)

    def _bindings(self, binding: Binding) -> Iterator[Binding]:
        if isinstance(binding, Gather):
            yield binding
            return
        value = self.rewritten(binding.value)
        yield from self._prepared()
        yield replace(binding, value=value)

    def _prepared(self) -> list[Let]:
        new, self._new = self._new, []
        return new

"""In which order results lie in memory, where arguments lie otherwise than kernels were built for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

from opwright.tracing.interface.orders import Order, Orders, order_of, orders_of
from opwright.tracing.torch_hooks.layouts.memory_formats import MemoryFormats


class Layouts:
    """The orders of what a function returns, found by running it on tensors without values once for each way to lie.

    Args:
        reference: The function, taking every argument by position.
    """

    def __init__(self, reference: Callable[..., Any]) -> None:
        self._reference = reference
        self._known: dict[Orders, tuple[Order, ...] | None] = {}

    def __call__(self, arguments: Sequence[Any]) -> tuple[Order, ...] | None:
        """The order of each result; () where arguments lie as written, None where it cannot be told."""
        lies = orders_of(arguments)
        if not lies:
            return ()
        if lies not in self._known:
            self._known[lies] = self._found(arguments)
        return self._known[lies]

    def _found(self, arguments: Sequence[Any]) -> tuple[Order, ...] | None:
        try:
            with torch.no_grad(), FakeTensorMode() as mode, MemoryFormats():
                given = [mode.from_tensor(each) if isinstance(each, torch.Tensor) else each for each in arguments]
                return tuple(order_of(torch.empty_like(made)) for made in tree_leaves(self._reference(*given)))
        except Exception:  # a function that looks at values
            return None

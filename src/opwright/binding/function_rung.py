"""The rung "function": an emitted `autograd.Function`, made runnable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opwright.errors import NoKernel


class FunctionRung:
    def __init__(self, derive: Callable[..., Any]) -> None:
        self._derive = derive

    def __call__(self, arguments: Sequence[Any]) -> Any:
        raise NoKernel("not yet")

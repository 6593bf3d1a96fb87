"""names: pickle an operator by its name, so that another process can use it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.checking.finding import Skipped


@dataclass(frozen=True, slots=True)
class Registered:
    """A picklable stand-in for an operator of `torch.ops`.

    Attributes:
        namespace: The namespace in `torch.ops.namespace.name.overload`.
        name: The name of the operator.
        overload: The name of its overload; None for the one that fits the arguments.
        home: A module that registers it when it is imported.
    """

    namespace: str
    name: str
    overload: str | None
    home: str | None

    @property
    def __name__(self) -> str:
        return f"{self.namespace}::{self.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator."""
        namespace = getattr(torch.ops, self.namespace)
        if self.home and not hasattr(namespace, self.name):
            import_module(self.home)
        packet = getattr(namespace, self.name)
        return (getattr(packet, self.overload) if self.overload else packet)(*args, **kwargs)


def registered(overload: OpOverload, home: str | None) -> Registered:
    """Name the operator that an overload belongs to."""
    namespace, _, name = overload._schema.name.partition("::")
    return Registered(namespace, name, None, home)


def demand_importable(function: Callable[..., Any]) -> None:
    """Refuse a function that exists in memory only.

    Raises:
        Skipped: No other process can find it by its name.
    """
    if isinstance(function, Registered):
        if function.home in (None, "__main__"):
            hint = "define `reference` and `samples` in the module that registers it"
            raise Skipped(f"no module is known whose import registers {function.__name__}", hint=hint)
        return
    owner = getattr(function, "__self__", function)
    name = getattr(owner, "__qualname__", type(owner).__qualname__)
    module = getattr(owner, "__module__", None)
    replaced = (
        isinstance(function, FunctionType) and getattr(sys.modules.get(module or ""), name, function) is not function
    )
    if "<" in name or module in (None, "__main__") or replaced:
        hint = "define it at the top level of a module"
        raise Skipped(f"{name} exists in memory only: another process cannot import it", hint=hint)

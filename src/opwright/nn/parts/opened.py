"""A module whose forward runs as written around its parts; one that runs modules in a row, as the two halves of it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol

from torch import nn

from opwright.nn.parts.cut import Cut
from opwright.nn.parts.part import Family, itself, part_of


class RunsByParts(Protocol):
    """What runs a forward, or a method, as written, with parts for the modules inside."""

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run it."""


class Opened:
    """Runs the forward of a module as written, with parts for the modules inside.

    Args:
        module: The module.
        cut: How it is served.
        family: All parts of the tree.
        server: Gives what serves it, where its forward calls it again.

    Attributes:
        stand_in: What its forward gets for `self`.
    """

    def __init__(self, module: nn.Module, cut: Cut, family: Family, server: Callable[[], Any]) -> None:
        self.stand_in = part_of(module, cut, family, server)
        self._kind = type(module)
        self._cut = cut
        self._family = family
        self._is_row = runs_in_a_row(module) and cut.is_free
        self._halves: tuple[Callable[..., Any], ...] = ()
        self._halved: tuple[nn.Module, ...] = ()

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run it."""
        if self._is_row and len(args) == 1 and not kwargs and (halves := self.halves()):
            result = args[0]
            for half in halves:
                result = half(result)
            return result
        return self._kind.forward(self.stand_in, *args, **kwargs)

    def halves(self) -> tuple[Callable[..., Any], ...]:
        """The two halves of modules in a row, each served as a whole; none for another module."""
        listed = self.stand_in._modules
        modules = tuple(listed.values())
        if len(modules) != len(self._halved) or not all(map(operator.is_, modules, self._halved)):
            middle = len(modules) // 2
            is_row = self._is_row and middle > 0 and None not in modules
            self._halves = (self._half(modules[:middle]), self._half(modules[middle:])) if is_row else ()
            self._halved = modules
        return self._halves

    def _half(self, modules: tuple[nn.Module, ...]) -> Callable[..., Any]:
        if len(modules) == 1:
            return modules[0]
        row = nn.Sequential(*map(itself, modules))  # named anew, so that equal rows have the same kernels
        served: nn.Module = self._family.serve(row, self._cut.inside("", row))
        return served.forward  # which has no hooks


def runs_in_a_row(module: nn.Module) -> bool:
    """Whether a forward does nothing but call the modules inside, one after the other."""
    kind = type(module)
    is_row = getattr(kind, "forward", None) is nn.Sequential.forward
    return is_row and getattr(kind, "__iter__", None) is nn.Sequential.__iter__

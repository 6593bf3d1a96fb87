"""A module's forward as a function of its tensors: the reference of the operator that serves it.

It runs on a copy of the module's structure, so that tracing does not change the module and changes to plain attributes
are detected and refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import TreeSpec, tree_unflatten

from opwright.errors import NoKernel
from opwright.nn.description import BOOKKEEPING, Described

Forward = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of running the module itself, which has already changed its buffers."""

    returned: Any


class ModuleReference:
    """Takes the tensors of a module, then the leaves of its arguments; returns the result and the changed buffers.

    Args:
        module: What to copy the structure of.
        described: The module's description and tensors.
        layout: The structure of `(args, kwargs)`.
        mutated: Positions of the tensors that the forward may change.
        forward: Calls the module's original forward.
    """

    def __init__(
        self, module: nn.Module, described: Described, layout: TreeSpec, mutated: Sequence[int], forward: Forward
    ) -> None:
        self.__wrapped__ = written_forward(module)
        self.__name__ = re.sub(r"\W", "_", type(module).__name__.lower(), flags=re.ASCII)
        self._layout = layout
        self._mutated = tuple(mutated)
        self._forward = forward
        self._key = described.key
        self._count = len(described.tensors)
        self._template = _copied(module, described.position, {})
        self.reads_from = _classes(module)  # their contents are in the description

    def __call__(self, *leaves: Any) -> tuple[Any, list[torch.Tensor]]:
        """Run the forward.

        Raises:
            NoKernel: If it changes attributes: those of the module itself would not change.
        """
        tensors = [leaf.clone() if p in self._mutated else leaf for p, leaf in enumerate(leaves[: self._count])]
        copy = _copied(self._template, tensors.__getitem__, {})
        args, kwargs = tree_unflatten(leaves[self._count :], self._layout)
        returned = self._forward(copy, args, kwargs)
        after = Described(copy)
        if after.key != self._key or any(x is not y for x, y in zip(after.tensors, tensors, strict=True)):
            raise NoKernel("its forward changes attributes of the module", hint="change buffers in place instead")
        return returned, [tensors[position] for position in self._mutated]

    def fallback(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ran:
        """Run the module itself."""
        return Ran(self._forward(module, args, kwargs))


def _classes(module: nn.Module) -> tuple[type, ...]:
    """The original classes of the module and its submodules, the served module first."""
    written = next(kind for kind in type(module).__mro__[1:] if not kind.__module__.startswith("opwright.nn."))
    return tuple(dict.fromkeys([written, *(type(inner) for inner in module.modules() if inner is not module)]))


def written_forward(module: nn.Module) -> Any:
    """The forward of a module's original class."""
    return next(vars(kind)["forward"] for kind in type(module).__mro__[1:] if _is_written(kind))


def _is_written(kind: type) -> bool:
    return "forward" in vars(kind) and not kind.__module__.startswith("opwright.nn.")


def _copied(module: nn.Module, tensor: Callable[[Any], Any], seen: dict[int, nn.Module]) -> nn.Module:
    """A copy with every parameter and buffer replaced, and without hooks."""
    if id(module) in seen:
        return seen[id(module)]
    copy = seen[id(module)] = object.__new__(type(module))
    fresh = vars(nn.Module())
    attributes = {  # in their order, which is part of a description
        name: fresh[name] if name in BOOKKEEPING else _container(value) for name, value in vars(module).items()
    }
    for held in ("_parameters", "_buffers"):
        attributes[held] = {name: None if t is None else tensor(t) for name, t in vars(module)[held].items()}
    attributes["_modules"] = {
        name: None if child is None else _copied(child, tensor, seen) for name, child in module._modules.items()
    }
    attributes["_non_persistent_buffers_set"] = set(module._non_persistent_buffers_set)
    copy.__dict__.update(attributes)
    return copy


def _container(value: Any) -> Any:
    """Copy lists, dicts and sets, which the forward may change."""
    if type(value) in (list, set):
        return type(value)(map(_container, value))
    if type(value) is dict:
        return {key: _container(member) for key, member in value.items()}
    return value

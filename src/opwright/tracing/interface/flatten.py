"""Flatten arguments in lists, tuples, dicts and named tuples: traces take tensors and constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import MappingKey, SequenceKey, TreeSpec, tree_flatten, tree_flatten_with_path, tree_unflatten

from opwright.errors import NoKernel
from opwright.ir.names.fresh import fresh
from opwright.tracing.interface.signature import Kind, Parameter, Signature


class Leaves(tuple[Any, ...]):
    """Flat arguments.

    Attributes:
        given: The original arguments.
        numbers: Positions of the tensors that stand for Python numbers.
    """

    given: tuple[Any, ...]
    numbers: tuple[int, ...] = ()


def flatten(arguments: tuple[Any, ...]) -> tuple[Leaves, TreeSpec]:
    """Flatten arguments; the layout identifies the structure."""
    members, layout = tree_flatten(arguments)
    leaves = Leaves(members)
    leaves.given = arguments
    return leaves, layout


def flat_signature(signature: Signature, leaves: Leaves) -> Signature:
    """One parameter for every leaf, named after its path, such as `weights_0` or `state_cell`."""
    found, _ = tree_flatten_with_path(leaves.given)
    names: list[str] = []
    for (top, *way), _ in found:
        parameter = signature.parameters[top.idx]  # type: ignore[attr-defined]
        steps = [parameter.name, *map(_step, way)]
        if way and isinstance(way[0], SequenceKey) and way[0].idx < len(parameter.members):
            steps[:2] = [parameter.members[way[0].idx]]
        names.append(fresh(re.sub(r"\W", "_", "_".join(steps)), names))  # a key may be "0.weight"
    kinds = [Kind.TENSOR if isinstance(leaf, torch.Tensor) else Kind.CONSTANT for leaf in leaves]
    parameters = [Parameter(name, kind, False) for name, kind in zip(names, kinds, strict=True)]
    return Signature(tuple(parameters), None, structured=True)


def leaves_of(positions: Sequence[int], leaves: Leaves) -> tuple[int, ...]:
    """The positions, among flat arguments, of the tensors in some of the original ones."""
    found, _ = tree_flatten_with_path(leaves.given)
    return tuple(
        place
        for place, ((top, *_), leaf) in enumerate(found)
        if top.idx in positions and isinstance(leaf, torch.Tensor)  # type: ignore[attr-defined]
    )


def _step(key: Any) -> str:
    match key:
        case SequenceKey(index):
            return str(index)
        case MappingKey(name):
            return str(name)
        case _:
            return str(getattr(key, "name", key))


class FlatReference:
    """A reference that takes flat arguments."""

    def __init__(self, reference: Callable[..., Any], layout: TreeSpec) -> None:
        self.__wrapped__ = reference
        self.__name__ = reference.__name__
        self._layout = layout

    def fallback(self, *arguments: Any) -> Any:
        """Call the reference with the original arguments."""
        return self.__wrapped__(*arguments)

    def __call__(self, *leaves: Any) -> Any:
        """Call the reference.

        Raises:
            NoKernel: If it changes a container, because the caller's would not change.
        """
        arguments = tree_unflatten(leaves, self._layout)
        before, given = tree_flatten(arguments)  # a torch.Size of symbolic sizes is a tuple
        returned = self.__wrapped__(*arguments)
        after, layout = tree_flatten(arguments)
        if layout != given or not _same(after, before):
            raise NoKernel("the function changes a list or dict that it is given", hint="change a copy, and return it")
        return returned


def _same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(left) == len(right) and all(one is other for one, other in zip(left, right, strict=True))

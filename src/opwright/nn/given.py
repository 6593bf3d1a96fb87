"""Containers among the arguments of a module's call: a trace has others, whose changes the caller would not see."""

from __future__ import annotations

from typing import Any

from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves

from opwright.errors import NoKernel
from opwright.tracing.trace_functions import none_of_them


class GivenContainers:
    """The lists, dicts and other containers that a forward gets, and what they hold.

    Args:
        given: Its arguments.
    """

    def __init__(self, given: Any) -> None:
        with none_of_them():
            held = [(value, _held_by(value)) for value in _nodes(given)]
        self._held = [(value, each) for value, each in held if not each[1].is_leaf() and type(value) is not tuple]

    def ensure_untouched(self, returned: Any) -> None:
        """Look whether the forward left them alone.

        Raises:
            NoKernel: If it changed or returned one.
        """
        with none_of_them():
            for value, (members, layout) in self._held:
                now, layout_now = _held_by(value)
                is_same = len(now) == len(members) and all(
                    one is other for one, other in zip(now, members, strict=True)
                )
                if not is_same or layout_now != layout:
                    fact = f"its forward changes a {type(value).__name__} that it is given"
                    raise NoKernel(fact, hint="return what is new")
            given = {id(value) for value, _ in self._held}
            if any(id(value) in given for value in _nodes(returned)):
                raise NoKernel("its forward returns a container that it is given", hint="return a new one")


def _nodes(tree: Any) -> list[Any]:
    """All containers and leaves."""
    found: list[Any] = []

    def note(value: Any) -> bool:
        found.append(value)
        return False

    tree_leaves(tree, is_leaf=note)
    return found


def _held_by(value: Any) -> tuple[list[Any], TreeSpec]:
    """The members of a container, and what else makes it up; a leaf holds itself."""
    return tree_flatten(value, is_leaf=lambda member: member is not value)

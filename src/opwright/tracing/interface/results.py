"""The structure of what a reference returns: the position of each tensor, argument and constant.

result = Result(layout, members)    layout: a pytree, as `torch.utils._pytree` describes one
member = Made(position)             a tensor that is computed; one that is returned twice has one position
       | Given(position)            an argument as it is
       | Constant(value)            a number, a truth value, a string, a dtype or None
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten, treespec_dumps, treespec_loads

from opwright.errors import LeftToFunction, NoKernel


@dataclass(frozen=True, slots=True)
class Made:
    """A tensor that is computed."""

    position: int


@dataclass(frozen=True, slots=True)
class Given:
    """An argument that is returned as it is."""

    position: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is the same at every call."""

    value: float | int | bool | str | None


Member = Made | Given | Constant
_CONSTANTS = (float, int, bool, str, type(None))


@dataclass(frozen=True, slots=True)
class Result:
    """What a reference returns.

    Attributes:
        layout: Tuples, lists, dicts and named tuples around the members.
        members: Its leaves, in order.
    """

    layout: TreeSpec
    members: tuple[Member, ...]

    @property
    def is_bare(self) -> bool:
        """Whether it is one computed tensor."""
        return self.layout.is_leaf() and self.members == (Made(0),)

    @property
    def is_plain(self) -> bool:
        """Whether it is what kernels return: one tensor or a tuple of different tensors."""
        flat = self.layout.type is tuple and all(child.is_leaf() for child in self.layout.children())
        return self.is_bare or (flat and all(member == Made(p) for p, member in enumerate(self.members)))

    @property
    def places(self) -> tuple[int, ...]:
        """For every computed tensor, its first position among the members."""
        first: dict[int, int] = {}
        for place, member in enumerate(self.members):
            if isinstance(member, Made):
                first.setdefault(member.position, place)
        return tuple(first.values())

    def rebuild(self, made: Sequence[torch.Tensor], arguments: Sequence[Any]) -> Any:
        """Build the result of a call from its kernel's results and its arguments."""
        return tree_unflatten([_value(member, made, arguments) for member in self.members], self.layout)

    def takes(self, arguments: Sequence[Any]) -> bool:
        """Whether returned arguments are contiguous as in the trace: `x.contiguous()` is `x` only then."""
        return all(arguments[m.position].is_contiguous() for m in self.members if isinstance(m, Given))

    def to_record(self) -> dict[str, Any] | None:
        """Plain data; None if it contains a user's class."""
        try:
            layout = treespec_dumps(self.layout)
        except NotImplementedError:
            return None
        members = [
            [type(m).__name__, m.value if isinstance(m, Constant) else m.position]  # JSON keeps these types apart
            for m in self.members
        ]
        return {"layout": layout, "members": members}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Result:
        """The inverse of `to_record`."""
        members = tuple(_MEMBERS[kind](value) for kind, value in record["members"])
        return cls(treespec_loads(record["layout"]), members)


_MEMBERS: dict[str, Any] = {member.__name__: member for member in (Made, Given, Constant)}


def read_result(name: str, returned: Any, arguments: Sequence[Any]) -> tuple[Result, tuple[torch.Tensor, ...]]:
    """Split what a reference returned into its structure and the tensors it computed, each once.

    Raises:
        NoKernel: If something else than tensors and constants is in it, or no computed tensor.
    """
    leaves, layout = tree_flatten(returned)
    if _is_iterated_otherwise(layout):
        fact = f"{name} returns a named tuple that gives its members in another order"
        raise NoKernel(fact, hint="return one without an __iter__ of its own")
    if _has_size(layout):  # which torch's trees take apart, and build as a tuple
        raise NoKernel(f"{name} returns a torch.Size", hint="return a tuple of numbers")
    given = {id(argument): p for p, argument in enumerate(arguments) if isinstance(argument, torch.Tensor)}
    made: dict[int, torch.Tensor] = {}
    members: list[Member] = []
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and id(leaf) in given:
            members.append(Given(given[id(leaf)]))
        elif isinstance(leaf, torch.Tensor):
            made.setdefault(id(leaf), leaf)
            members.append(Made(list(made).index(id(leaf))))
        elif type(leaf) in _CONSTANTS:
            members.append(Constant(leaf))
        else:
            what = f"{type(leaf).__name__}" + (f" at position {place}" if len(leaves) > 1 else "")
            raise NoKernel(f"{name} returns a {what}", hint="return tensors, constants, or containers of them")
    if not made:
        refused = LeftToFunction if any(isinstance(member, Given) for member in members) else NoKernel
        raise refused(f"{name} returns no tensor that it computes", hint="return a tensor that it computes")
    return Result(layout, tuple(members)), tuple(made.values())


def _is_iterated_otherwise(layout: TreeSpec) -> bool:
    """Whether there is a named tuple in a structure that torch's trees take apart in another order than they build."""
    is_so = layout.type is namedtuple and layout.context.__iter__ is not tuple.__iter__
    return is_so or any(map(_is_iterated_otherwise, layout.children()))


def _has_size(layout: TreeSpec) -> bool:
    return layout.type is torch.Size or any(map(_has_size, layout.children()))


def _value(member: Member, made: Sequence[torch.Tensor], arguments: Sequence[Any]) -> Any:
    match member:
        case Made(position):
            return made[position]
        case Given(position):
            return arguments[position]
        case Constant(value):
            return value

"""The places in a function's bytecode that may change something, or load a name."""

from __future__ import annotations

import collections
import dis
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

from opwright.tracing.outside.code.identity import Dotted, comparisons, given_to

_STORES = (
    *("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "STORE_GLOBAL"),
    *("DELETE_ATTR", "DELETE_SUBSCR", "DELETE_GLOBAL"),
)
_OF_CELLS = ("STORE_DEREF", "DELETE_DEREF")
_ROOTS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST", "STORE_FAST_LOAD_FAST")
_WIDER = "EXTENDED_ARG"
_NEAR = 16  # instructions after a name in which its arguments are loaded
_FROM_OUTSIDE = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_ASKING = (("getattr",), ("hasattr",), ("type",))
_SAME_IN_TRACES = ("dtype", "device", "layout")  # of a tensor, and themselves no tensors
_OF_VALUES = (("id",), ("hash",), ("type",))
_CONTAINERS = (list, dict, set, bytearray, collections.deque, collections.OrderedDict, collections.defaultdict)
_CONSTANT_TWINS = (tuple, types.MappingProxyType, frozenset, bytes)
_OF_ARRAYS = (
    "fill",
    "put",
    "partition",
    "itemset",
    "resize",
    "byteswap",
    "setfield",
    "setflags",
    "frombytes",
    "fromlist",
)
_CHANGING_METHODS = frozenset(name for kind in _CONTAINERS for name in dir(kind)).difference(
    *(dir(kind) for kind in _CONSTANT_TWINS)
) | {torch.Tensor.requires_grad_.__name__, *_OF_ARRAYS}


@dataclass(frozen=True, slots=True)
class Points:
    """The places of one code object.

    Attributes:
        changing: The lines on which it may change an object.
        names: The dotted name that an instruction loads, by its offset and by that of its EXTENDED_ARG.
        compared: What it asks whether they are one object, by the offset.
    """

    changing: frozenset[int]
    names: Mapping[int, Name]
    compared: Mapping[int, tuple[Dotted | None, Dotted | None]]


@dataclass(frozen=True, slots=True)
class Name:
    """A dotted name.

    Attributes:
        way: Its parts.
        is_local: Whether the first of them is a variable of the function itself.
        asked: For `getattr(x, "scale", 1.0)`, `type(x)` and such the variable, and the attribute unless it is computed.
        given: For `id(x.y)`, `hash(x.y)` and `type(x.y)` what they are given; None if that is computed.
    """

    way: tuple[str, ...]
    is_local: bool
    asked: tuple[str, str | None] | None = None
    given: Dotted | None = None


@lru_cache(maxsize=4096)
def points_of(code: types.CodeType) -> Points:
    """Read a code object; functions inside of it have their own."""
    changing, names = set(), {}
    name: Name | None = None
    steps = list(_steps(code))
    offsets: list[int] = []  # of an instruction and of the EXTENDED_ARGs before it, at which Python stops
    for position, (step, line) in enumerate(steps):
        offsets.append(step.offset)
        if step.opname == _WIDER:
            continue
        if may_change(step, code):
            changing.add(line)
        name = _named(step, name, code)
        if name is not None and (len(name.way) > 1 or not name.is_local):
            following = [each for each, _ in steps[position + 1 : position + 1 + _NEAR]]
            asked = _asked(following) if name.way in _ASKING else None
            given = given_to(following) if name.way in _OF_VALUES else None
            names.update(dict.fromkeys(offsets, replace(name, asked=asked, given=given)))
        offsets = []
    return Points(frozenset(changing), names, comparisons(code))


def may_change(step: dis.Instruction, code: types.CodeType) -> bool:
    """Whether an instruction changes an object, or loads a mutating method of a container."""
    if step.opname in _STORES:
        return True
    if step.opname in _OF_CELLS:
        return step.argval in code.co_freevars
    if step.opname == "BINARY_OP":
        return step.argrepr.endswith("=")
    return step.opname in _ATTRIBUTES and step.argval in _CHANGING_METHODS


def _named(step: dis.Instruction, before: Name | None, code: types.CodeType) -> Name | None:
    """The dotted name on top of the stack after an instruction."""
    if step.opname.startswith(_ROOTS):
        # From Python 3.13 on an instruction may load two variables, or store one and load another.
        loaded = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
        return Name((loaded,), is_local=step.opname not in _FROM_OUTSIDE or loaded in code.co_cellvars)
    if before is not None and step.opname in _ATTRIBUTES:
        return Name((*before.way, step.argval), before.is_local)
    return None


def _asked(following: Sequence[dis.Instruction]) -> tuple[str, str | None] | None:
    """The first two arguments of a call, if the first is a variable, or computed from one."""
    first, second, *_ = (*(step for step in following[:4] if step.opname not in ("CACHE", "PUSH_NULL")), None, None)
    if first is None or not first.opname.startswith(_ROOTS):
        return None
    if not isinstance(first.argval, str):  # both are loaded at once, and the second is computed
        return first.argval[0], None
    if second is not None and second.opname in _ATTRIBUTES and second.argval in _SAME_IN_TRACES:
        return None
    is_known = second is not None and second.opname == "LOAD_CONST" and isinstance(second.argval, str)
    return first.argval, second.argval if second is not None and is_known else None


def _steps(code: types.CodeType) -> Iterator[tuple[dis.Instruction, int]]:
    lines = {offset: line for start, end, line in code.co_lines() for offset in range(start, end, 2)}
    for step in dis.get_instructions(code):
        yield step, lines.get(step.offset) or code.co_firstlineno

"""Functions taken apart: the data that a function closes over becomes an argument of operators.

A function that a training step defines anew, such as `lambda w: loss(w, batch)`, is another object with another batch
each time, and the same code. Taken apart, all of these are one operator, of the batch too.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from opwright.binding.variants.kinds import CONSTANT_TYPES

NOTHING: Mapping[str, Any] = types.MappingProxyType({})
_PLACEHOLDER = "an argument of the operator"


@dataclass(frozen=True, slots=True)
class Same:
    """A key that is equal for one and the same object."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class Opened:
    """A value taken apart.

    Attributes:
        key: Equal for values that differ in their data alone.
        data: Tensors, constants and containers of these; NOTHING if there are none.
        close: Makes the value again, of other data; of NOTHING, with placeholders for it.
    """

    key: Hashable
    data: Any
    close: Callable[[Any], Any]


def opened(function: Callable[..., Any], within: tuple[Any, ...] = ()) -> Opened:
    """Take a function apart; a callable without data, or whose parts are unknown, is a whole.

    Args:
        function: Any callable.
        within: The functions in whose closures it was found.
    """
    if any(function is outer for outer in within):
        return _whole(function, Same(function))
    if type(function) is functools.partial:
        return _opened_partial(function, (*within, function))
    if isinstance(function, types.MethodType):
        return _whole(function, (Same(function.__self__), Same(function.__func__)))
    if isinstance(function, types.FunctionType) and (function.__closure__ or _has_tensors_as_defaults(function)):
        return _opened_function(function, (*within, function))
    return _whole(function, Same(function))


def _whole(value: Any, key: Hashable) -> Opened:
    return Opened(key, NOTHING, lambda _: value)


def _opened_partial(function: functools.partial[Any], within: tuple[Any, ...]) -> Opened:
    count, keywords = len(function.args), tuple(function.keywords)
    given = [*enumerate(function.args), *function.keywords.items()]
    values = {"function": function.func, **{f"given_{name}": value for name, value in given}}

    def make(parts: dict[str, Any]) -> Callable[..., Any]:
        inner, *given = parts.values()
        return functools.partial(inner, *given[:count], **dict(zip(keywords, given[count:], strict=True)))

    return _joined((functools.partial, count), values, make, within)


def _opened_function(function: types.FunctionType, within: tuple[Any, ...]) -> Opened:
    code, cells, scope, name = function.__code__, function.__closure__ or (), function.__globals__, function.__name__
    try:
        values = {variable: cell.cell_contents for variable, cell in zip(code.co_freevars, cells, strict=True)}
    except ValueError:  # a variable that has no value yet
        return _whole(function, Same(function))
    if not _assigned(Same(code)).isdisjoint(values):  # which has to happen to the variable itself
        return _whole(function, Same(function))
    attributes, about = dict(function.__dict__), (function.__qualname__, function.__module__)

    def make(parts: dict[str, Any]) -> Callable[..., Any]:
        defaults = parts.pop("its defaults", _PLACEHOLDER)
        positional, by_keyword = (None, None) if defaults is _PLACEHOLDER else defaults
        made = types.FunctionType(code, scope, name, positional, tuple(map(types.CellType, parts.values())))
        made.__kwdefaults__ = by_keyword
        made.__dict__.update(attributes)
        made.__qualname__, made.__module__ = about
        return made

    if function.__defaults__ or function.__kwdefaults__:
        values["its defaults"] = function.__defaults__, function.__kwdefaults__
    return _joined((Same(code), Same(scope)), values, make, within)


def _joined(
    key: tuple[Hashable, ...],
    values: Mapping[str, Any],
    make: Callable[[dict[str, Any]], Callable[..., Any]],
    within: tuple[Any, ...],
) -> Opened:
    """A function, put together from the values that it holds."""
    parts = {name: _part(value, within) for name, value in values.items()}
    data = {name: part.data for name, part in parts.items() if part.data is not NOTHING}

    closing = {name: part.close for name, part in parts.items()}  # which hold no data

    def close(data: Mapping[str, Any]) -> Callable[..., Any]:
        return make({name: close_part(data.get(name, NOTHING)) for name, close_part in closing.items()})

    keys = tuple([(name, part.key) for name, part in parts.items()])
    return Opened((*key, keys), data or NOTHING, close)


def _part(value: Any, within: tuple[Any, ...]) -> Opened:
    if isinstance(value, (types.FunctionType, functools.partial)):
        return opened(value, within)
    if _is_data(value) or all(map(_is_data, tree_leaves(value))):
        return Opened("data", value, _data_or_placeholder)
    return _whole(value, Same(value))


def _data_or_placeholder(data: Any) -> Any:
    return _PLACEHOLDER if data is NOTHING else data


def _is_data(leaf: object) -> bool:
    return isinstance(leaf, torch.Tensor) or type(leaf) in CONSTANT_TYPES


def _has_tensors_as_defaults(function: types.FunctionType) -> bool:
    defaults = (function.__defaults__, function.__kwdefaults__)
    return any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(defaults)) if any(defaults) else False


@functools.lru_cache(maxsize=1024)
def _assigned(code: Same) -> frozenset[str]:
    """The variables of closures that some code, or a function in it, assigns or deletes."""
    return frozenset(_assignments(code.value))


def _assignments(code: types.CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_DEREF", "DELETE_DEREF"):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _assignments(constant)

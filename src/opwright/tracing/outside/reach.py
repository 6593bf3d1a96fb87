"""Find what a function reads from outside its arguments: a walk with a rule for each kind of value."""

from __future__ import annotations

import collections
import functools
import inspect
import logging
import operator
import pathlib
import threading
import types
import typing
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch._ops import OpOverload, OpOverloadPacket, _OpNamespace

from opwright.tracing.outside.frameworks import introduce_tensors
from opwright.tracing.outside.guard import Fetch, Guard
from opwright.tracing.outside.hazards import Hazard
from opwright.tracing.outside.ran import Codes
from opwright.tracing.outside.rules import classes, containers, functions, layers, objects
from opwright.tracing.outside.rules.tensors import with_tensor_methods
from opwright.tracing.outside.walk import MOST_VALUES, Follow, Layers, Walk, Way


@dataclass(frozen=True, slots=True)
class Reads:
    """What a function reads from outside.

    Attributes:
        guard: The guard of the function, with all guards inside it.
        hazards: Lines that read something that cannot be compared.
        layers: The slots of a served module; None for a function.
        ran: The functions to which the walk kept; None if it searched all that can be reached.
        searched: Of these, those that it has found.
        names: The names of attributes in code that was searched.
        unordered: Lines that make sets; a trace that runs one has no record.
        noted: The code whose reads are guarded; None if more may run.
        may_ask_for_identity: Whether code that was searched asks whether two values are one object.
    """

    guard: Guard
    hazards: tuple[Hazard, ...]
    layers: Layers | None = None
    ran: Codes | None = None
    searched: Codes | None = None
    names: frozenset[str] = frozenset()
    unordered: tuple[Hazard, ...] = ()
    noted: frozenset[types.CodeType] | None = None
    may_ask_for_identity: bool = False


# What is given to these runs in a backward pass, after the trace of the forward.
_HOOKS = frozenset(
    {"register_hook", "register_multi_grad_hook", "register_post_accumulate_grad_hook", "saved_tensors_hooks"}
)


_MOST_WITH_MODULES = 8 * MOST_VALUES
_MOST_A_MODULE = 64  # in models of transformers it is some 35


def reads_of(function: Any, frozen: frozenset[str] = frozenset()) -> Reads:
    """Walk through what a function can reach.

    Args:
        function: The function as written; or several in a tuple.
        frozen: Names, such as "SCALE" or "config.eps", whose values are treated as constants.
    """
    own = _packages(function if isinstance(function, tuple) else [function])
    return _walked(function, lambda names, is_dynamic, asked: Walk(names, is_dynamic, asked, frozen, own, _rule_for))


def reads_with_tensors(function: Any, frozen: frozenset[str] = frozenset()) -> Reads:
    """The same, where tensors are arguments: their guards say that one is there, and put it in a slot."""
    own = _packages(function if isinstance(function, tuple) else [function])

    def make(names: frozenset[str], is_dynamic: bool, asked: frozenset[str]) -> Walk:
        return Walk(names, is_dynamic, asked, frozen, own, _rule_for, Layers(of_module=False), _MOST_WITH_MODULES)

    return _walked(function, make)


def reads_of_module(
    module: weakref.ref[torch.nn.Module], ran: Codes | None = None, *, only: frozenset[str] | None = None
) -> Reads:
    """Walk through what the forward of a module that is to be served can reach; the guard begins at the reference.

    Args:
        module: The module.
        ran: The functions that it runs, to keep to them; None for all that it can reach.
        only: The attributes of the module itself that its forward asks for; None if that is not known.
    """
    inner = [*served.modules()] if (served := module()) is not None else []
    own = _packages(type(each) for each in inner)

    def make(names: frozenset[str], is_dynamic: bool, asked: frozenset[str]) -> Walk:
        most = MOST_VALUES * (1 + len(inner))
        most = min(most, _MOST_WITH_MODULES + _MOST_A_MODULE * len(inner))
        return Walk(names, is_dynamic, asked, frozenset(), own, _rule_for, Layers(only=only), most, ran)

    reads = _walked(module, make)
    return reads if ran is None or _HOOKS.isdisjoint(reads.names) else reads_of_module(module, only=only)


def _packages(values: Iterable[Any]) -> frozenset[str]:
    return frozenset((getattr(value, "__module__", None) or "").partition(".")[0] for value in values)


def _walked(root: Any, make: Callable[[frozenset[str], bool, frozenset[str]], Walk]) -> Reads:
    """Walk until there are no new names."""
    introduce_tensors()
    code = _code_of(getattr(root(), "forward", root) if isinstance(root, weakref.ref) else root)
    way = Way(Fetch.SELF, None, "", code, frozenset())
    names, asked, is_dynamic = frozenset[str](), frozenset[str](), False
    while True:
        walk = make(names, is_dynamic, asked)
        guard = with_tensor_methods(walk, walk.describe(root, way), way)
        if walk.met_names <= names and walk.met_asked <= asked and walk.met_dynamic <= is_dynamic:
            searched = walk.ran, walk.searched(), names
            more = tuple(walk.unordered), walk.noted(), walk.may_ask_for_identity()
            return Reads(guard, walk.every_hazard(), walk.layers, *searched, *more)
        names, asked = names | walk.met_names, asked | walk.met_asked
        is_dynamic |= walk.met_dynamic  # which another walk may not meet: without this, they could take turns


def _code_of(function: Any) -> types.CodeType:
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    return code if isinstance(code, types.CodeType) else _code_of.__code__


def _rule_for(value: Any) -> Follow:
    cls = type(value)  # also where an object gives another class, as proxies do
    return _EXACTLY.get(cls) or next((follow for kind, follow in _KINDS if issubclass(cls, kind)), objects.instance)


_NAMED = (
    *(types.MethodDescriptorType, types.WrapperDescriptorType, types.UnionType),
    *(numpy.ufunc, OpOverload, OpOverloadPacket, _OpNamespace),
)
# A subclass of a container is an object with members.
_EXACTLY: Mapping[type, Follow] = {
    dict: containers.mapping,
    collections.OrderedDict: containers.mapping,
    collections.defaultdict: containers.mapping,
    collections.Counter: containers.mapping,
    list: containers.sequence,
    tuple: containers.sequence,
    set: containers.unordered,
    frozenset: containers.unordered,
    collections.deque: containers.unordered,
    types.MappingProxyType: containers.view,
    object: objects.sentinel,
    collections.ChainMap: containers.chain,
}
_KINDS: tuple[tuple[Any, Callable[..., Guard]], ...] = (
    (types.FunctionType, functions.function),
    (types.MethodType, functions.method),
    ((types.BuiltinFunctionType, types.MethodWrapperType, type(numpy.stack)), functions.builtin),
    ((types.GenericAlias, type(typing.List[int])), classes.alias),  # noqa: UP006 - the class of `Holder[int]`
    ((staticmethod, classmethod), functions.wrapper),
    (functools._lru_cache_wrapper, objects.with_attributes(functions.cached)),
    ((functools.partial, functools.partialmethod), objects.with_attributes(functions.partial)),
    ((operator.itemgetter, operator.attrgetter, operator.methodcaller), functions.getter),
    (property, objects.with_attributes(classes.property_of)),
    (functools.cached_property, objects.with_attributes(classes.cached_property)),
    (logging.Logger, objects.with_attributes(objects.logger)),
    (pathlib.Path, objects.with_attributes(objects.path)),
    ((type(threading.Lock()), type(threading.RLock())), objects.lock),
    (weakref.ref, objects.with_attributes(objects.weak_reference)),
    (types.ModuleType, classes.module),
    (type, classes.class_called),
    (torch.Tensor, objects.tensor),
    (torch.nn.Module, layers.layer),
    (numpy.ndarray, objects.with_attributes(objects.array)),
    (ContextVar, objects.context_variable),
    (_NAMED, Walk.same),
)

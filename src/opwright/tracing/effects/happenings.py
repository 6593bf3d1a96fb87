"""Side effects of a function, found by the names it loads: printing, reading the clock, drawing numbers."""

from __future__ import annotations

import builtins
import collections
import contextlib
import copy
import decimal
import functools
import gc
import inspect
import io
import logging
import operator
import os
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import torch

from opwright.tracing.effects.batch_places import REMOVES_A_BATCH, is_misplaced
from opwright.tracing.effects.checkpoints import CHECKPOINT
from opwright.tracing.effects.points import Name
from opwright.tracing.outside.unasked import attribute as attribute_of
from opwright.tracing.outside.unasked import behind, is_a

_WRITES = "writes something out"
_DRAWS = "draws random numbers that are not torch's"
_TIME = "asks for the time"
_SYSTEM = "calls the operating system"
_WARNS = "warns"
_TAKES = "takes from an iterator that is made outside of it"
_GENERATES = "uses a generator of random numbers that is made outside of it"
ASKS_WHICH = "asks which tensor it has, by its address or hash"
NEVER_SPARED = frozenset((_WRITES, _DRAWS, _TAKES, _GENERATES, ASKS_WHICH))  # also in libraries, which warn at will
ASKS_FOR_CLASS = "asks of which class a tensor is"


@dataclass(frozen=True, slots=True)
class Happening:
    """What loading a name may do.

    Attributes:
        fact: What the function does; empty if a comparison of objects will show it.
        owner: The object involved, harmless if the function made it; None if there is none.
        is_common: Whether libraries do the same harmlessly, such as waiting for a lock.
    """

    fact: str = ""
    owner: Any = None
    is_common: bool = False


# Settings that surroundings.py compares, and puts back; seeds are seen by the code that runs.
_COMPARED = (
    "set_grad_enabled",
    "set_default_dtype",
    "set_num_threads",
    "use_deterministic_algorithms",
    "set_rng_state",
)
_SETTERS = tuple(
    setter
    for name, setter in vars(torch).items()
    if name.startswith(("set_", "use_")) and name not in _COMPARED and not isinstance(setter, type)
)
_SETTERS_OF_PYTHON = (
    *(setter for name, setter in vars(sys).items() if name.startswith("set") and callable(setter)),
    *(gc.enable, gc.disable, gc.freeze, gc.unfreeze, gc.set_threshold, gc.set_debug),
)
_FUNCTIONS: tuple[tuple[Callable[..., Any], str], ...] = (
    (builtins.print, _WRITES),
    (builtins.input, "asks the user"),
    (builtins.open, _SYSTEM),
    (builtins.breakpoint, "stops in a debugger"),
    (warnings.warn, _WARNS),
    (warnings.warn_explicit, _WARNS),
    (torch.initial_seed, "asks for the seed of the generator of random numbers"),
    (decimal.setcontext, "changes Python's settings for decimal numbers"),
    *((setter, "changes a setting of torch") for setter in _SETTERS),
    *((setter, "changes a setting of Python") for setter in _SETTERS_OF_PYTHON),
    *((setter, "changes a setting of NumPy") for setter in (numpy.set_printoptions, numpy.seterr)),
    *((comparing, ASKS_WHICH) for comparing in (operator.is_, operator.is_not)),
    (torch.nn.Parameter, ASKS_FOR_CLASS),  # a trace has tensors without a class of their own
    (torch.nn.Buffer, ASKS_FOR_CLASS),
    *((changing, "") for changing in (next, setattr, delattr, exec, eval)),
)
_BY_ID: Mapping[int, Happening] = {id(inspect.unwrap(function)): Happening(fact) for function, fact in _FUNCTIONS}
_MODULES: Mapping[str, str] = {
    "time": _TIME,
    "posix": _SYSTEM,
    "nt": _SYSTEM,
    "_socket": _SYSTEM,
    "_posixsubprocess": _SYSTEM,
}
_COMMON = frozenset({"time", "posix", "nt"})
_CLOCKS = frozenset({"now", "utcnow", "today"})  # methods of the classes of `datetime`
_HARMLESS = frozenset({"builtins", "math", "cmath", "torch"})
_OWNERS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (io.IOBase, _WRITES),
    (random.Random, _DRAWS),
    ((numpy.random.RandomState, numpy.random.Generator), _DRAWS),
    (torch.Generator, _GENERATES),
    (Iterator, _TAKES),
)
_LOGGING = frozenset(
    function.__code__ for function in (logging.Logger._log, logging.Logger.handle, logging.Handler.handle)
)
_SEEDING_NAMES = ("manual_seed", "seed", "set_rng_state", "fork_rng")
_SEEDING = frozenset(
    inspect.unwrap(function).__code__
    for module in (torch.random, torch.cuda.random)
    for name, function in vars(module).items()
    if isinstance(function, types.FunctionType) and name.startswith(_SEEDING_NAMES)
)
_ENVIRONMENT = dict.fromkeys(
    (os._Environ.__setitem__.__code__, os._Environ.__delitem__.__code__), "changes the environment of the process"
)
_BY_CODE = {
    **dict.fromkeys(_SEEDING, "seeds the generator of random numbers"),
    torch.autograd.backward.__code__: "accumulates gradients in .grad",
    torch.utils.swap_tensors.__code__: "swaps tensors",
    torch.inference_mode.__enter__.__code__: "enters or leaves inference mode",
}
_TORCH = Path(torch.__file__).parent
_BETWEEN = (f"{_TORCH}{os.sep}", contextlib.__file__)  # a function of torch and its caller
_PARTS = ("_parameters", "_buffers", "_modules")
_DEEPEST, _MOST_MEMBERS = 3, 64
_NOTHING = object()
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_SIZES = frozenset({"shape", "size", "numel", "nelement", "stride", "storage_offset"})  # what gives one


def happening_in(frame: types.FrameType, name: Name) -> Happening | None:
    """The side effect of loading a name; None if there is none."""
    root, *attributes = name.way
    value = frame.f_locals.get(root, _NOTHING)
    if value is _NOTHING:
        value = frame.f_globals.get(root, frame.f_builtins.get(root))
    if name.asked is not None and value is type:
        return _of_class(frame, name.asked[0], name.given)
    if value is id or value is hash:
        return _of_address(frame, name.given, is_unknown_a_tensor=value is id)  # a tensor's hash is seen where it runs
    if name.asked is not None and (value is getattr or value is hasattr):
        variable, attribute = name.asked
        return _of_tensor(frame.f_locals.get(variable), attribute)
    for position, attribute in enumerate(attributes):
        if attribute == "__class__" and is_a(value, torch.Tensor):
            return Happening(ASKS_FOR_CLASS)
        if (asked := _of_tensor(value, attribute)) is not None:
            return asked
        owner, value = value, _member(value, attribute)
        if value is None:
            is_last = position == len(attributes) - 1
            return _of_owner(owner) if is_last else None
    return _of_value(value)


def _of_class(frame: types.FrameType, variable: str, given: Sequence[str] | None) -> Happening | None:
    """Asking for the type of a value: tensors and numbers of a trace are of other types."""
    asked = (frame.f_locals.get(variable), None if given is None else value_of(frame, given))
    if any(is_a(value, torch.Tensor) for value in asked[:1]):
        return Happening(ASKS_FOR_CLASS)
    return Happening("asks of which type a number is") if any(is_a(value, _SYMBOLS) for value in asked) else None


def _of_address(frame: types.FrameType, given: Sequence[str] | None, *, is_unknown_a_tensor: bool) -> Happening | None:
    """Asking for the address of a value: that of a tensor differs from call to call, and a trace has others."""
    if frame.f_code.co_filename == copy.__file__:  # which remembers what it has copied
        return None
    value = None if given is None else value_of(frame, given)
    is_tensor = is_unknown_a_tensor if value is None else is_a(value, torch.Tensor)
    return Happening(ASKS_WHICH) if is_tensor else None


def may_be_numbers(frame: types.FrameType, known: Sequence[Any], *, is_computed: bool) -> bool:
    """Whether a frame compares numbers of a trace by `is`.

    Args:
        frame: The frame.
        known: What it compares, as far as that is known without running it.
        is_computed: Whether another operand is not known.
    """
    if any(is_a(value, _SYMBOLS) for value in known):
        return True
    if not is_computed or not all(type(value) in (int, float) for value in known):
        return False
    return not _SIZES.isdisjoint(frame.f_code.co_names) or any(map(_has_numbers, frame.f_locals.values()))


def _has_numbers(value: Any) -> bool:
    members = value if type(value) in (list, tuple, torch.Size) else (value,)
    return any(is_a(member, _SYMBOLS) for member in members)


def value_of(frame: types.FrameType, way: Sequence[str]) -> Any:
    """The value of a dotted name, without running user code; None if that cannot be found out."""
    root, *attributes = way
    value = frame.f_locals.get(root, _NOTHING)
    if value is _NOTHING:
        value = frame.f_globals.get(root, frame.f_builtins.get(root))
    for attribute in attributes:
        parts = (_member(value, part) for part in _PARTS) if is_a(value, torch.nn.Module) else ()
        held = next((part[attribute] for part in parts if part and attribute in part), None)
        value = _member(value, attribute) if held is None else held
    return value


def _of_tensor(value: Any, attribute: str | None) -> Happening | None:
    """An attribute that not every tensor has: the tensors of a trace lack those that users set."""
    if not is_a(value, torch.Tensor) or (attribute is not None and hasattr(torch.Tensor, attribute)):
        return None
    if attribute is not None and attribute in getattr(value, "__dict__", {}):
        return None
    return Happening(f"looks whether a tensor has an attribute {attribute or ''!r}")


def logs(code: types.CodeType) -> bool:
    """Whether a function is the one in which `logging` writes, after testing the level."""
    return code in _LOGGING


def done_by(frame: types.FrameType) -> str | None:
    """What a function of torch, or one of the environment, does that no object shows.

    It sets the generator, perhaps to the state that it has; it accumulates gradients, in leaves for which others
    stand in a trace; it swaps a tensor for one that does; or it enters or leaves inference mode, which results show.
    Checkpoints do the first two for what they run again, and put back what was. What a `vmap` cannot place ends the
    process in a trace, whose sizes are objects.
    """
    if frame.f_code is REMOVES_A_BATCH:
        given = frame.f_locals
        is_lost = is_misplaced(given["self"], given["level"], given["out_dim"])
        return "gives a result without a batch a dimension that it does not have" if is_lost else None
    if frame.f_code in _ENVIRONMENT and frame.f_back is not None:
        return None if frame.f_back.f_code.co_filename.startswith(_BETWEEN) else _ENVIRONMENT[frame.f_code]
    fact = _BY_CODE.get(frame.f_code)
    above = frame.f_back if fact else None
    while above is not None and above.f_code.co_filename.startswith(_BETWEEN):
        if above.f_code.co_filename == CHECKPOINT:
            return None
        above = above.f_back
    return fact


def _of_value(value: Any) -> Happening | None:
    known = _BY_ID.get(id(_within(value)))
    if known is not None or is_a(value, type):
        return known
    if is_a(value, types.BuiltinFunctionType):
        return _of_builtin(value)
    if is_a(value, types.MethodType):
        return _of_owner(value.__self__)
    if is_a(value, (functools._lru_cache_wrapper, functools.partial)) or _has_defaults(value, _DEEPEST):
        return Happening()
    found = _of_owner(value)
    return replace(found, is_common=True) if found is not None and is_a(value, io.IOBase) else found


def _within(value: Any) -> Any:
    """The function inside of wrappers: torch's compiler puts one around `torch.manual_seed` when it is imported."""
    while is_a(value, types.FunctionType) and "__wrapped__" in vars(value):
        value = vars(value)["__wrapped__"]
    return value


def _has_defaults(value: Any, depth: int) -> bool:
    """Whether a container is, or contains, a defaultdict, which a lookup of a missing key changes."""
    if is_a(value, collections.defaultdict):
        return True
    if not depth or type(value) not in (list, tuple, dict) or len(value) > _MOST_MEMBERS:
        return False
    members = value.values() if is_a(value, dict) else value
    return any(_has_defaults(member, depth - 1) for member in list(members))


def _of_builtin(function: types.BuiltinFunctionType) -> Happening | None:
    owner: Any = function.__self__
    if is_a(owner, types.ModuleType):
        root = owner.__name__.partition(".")[0]
        fact = _MODULES.get(root, "")
        return Happening(fact, is_common=root in _COMMON) if fact or root not in _HARMLESS else None
    if is_a(owner, type):
        return Happening(_TIME) if owner.__module__ == "datetime" and function.__name__ in _CLOCKS else None
    return _of_owner(owner) or Happening()


def _of_owner(owner: Any) -> Happening | None:
    kind = type(behind(owner))
    return next((Happening(fact, owner) for owning, fact in _OWNERS if issubclass(kind, owning)), None)


def _member(owner: Any, name: str) -> Any:
    """A member of a module or an object, without running user code; None if that cannot be found out."""
    if is_a(owner, types.ModuleType):
        return attribute_of(owner, "__dict__").get(name)
    if is_a(owner, type):
        return getattr(owner, name, None) if type(owner) is type and owner.__module__ == "datetime" else None
    if type(owner) in _PLAIN_CONTAINERS:
        return getattr(owner, name, None)
    held = attribute_of(owner, "__dict__")
    return held.get(name) if type(held) is dict else None


_PLAIN_CONTAINERS = (list, dict, set)

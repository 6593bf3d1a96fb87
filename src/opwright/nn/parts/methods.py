"""Methods that the forward of an opened module calls: each is served as a whole, as if it were the forward of a module.

Models split their forwards into methods (`self.encode(x)`, `self.forward_head(x)`), whose steps between the modules
inside no part would serve.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any
from weakref import ref

import torch
from torch import nn

from opwright.tracing.outside.code.instructions import codes_in
from opwright.tracing.outside.purity import is_installed, module_of

_READS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_OF_CLOSURES = frozenset({"MAKE_CELL", "LOAD_CLOSURE"})  # functions inside use the variable; their code is read too
_OTHER_WAYS = frozenset(  # to `self`
    ("super", "__self__", "__closure__", "locals", "vars", "eval", "exec", "f_locals", "_getframe", "currentframe")
)
_GIVES_OTHERS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class View(nn.Module):
    """A mixin that comes before a module's class and has a method of it as its forward."""

    def __init_subclass__(cls) -> None:
        """Register nothing: what the module's class does for subclasses it has done for itself."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a module's class.

    Attributes:
        kind: The class.
        function: The method.
        members: All members of the class, by name, that it and what it calls on `self` ask for.
    """

    kind: type[nn.Module]
    function: FunctionType
    members: Mapping[str, Any]

    def is_as_it_was(self) -> bool:
        """Whether the class has the same members as when the method was looked at."""
        return all(getattr(self.kind, name, None) is member for name, member in self.members.items())


@functools.lru_cache(maxsize=1024)
def methods_of(kind: Any) -> dict[str, Method]:
    """The methods of a module's class that can be served, by name.

    Those are plain methods of the user's that do nothing with `self` but to read its attributes, and so do the
    methods that they call on it: what serves them runs them with another `self`, which is no part and whose call
    would be a call of the method.
    """
    found: dict[str, Method] = {}
    if kind.__getattr__ is not nn.Module.__getattr__ or kind.__getattribute__ is not object.__getattribute__:
        return found  # which are given `self`
    for name, function in _written_in(kind).items():
        asked: dict[str, Any] = {}
        if _only_reads(kind, name, asked):
            found[name] = Method(kind, function, {each: getattr(kind, each, None) for each in asked})
    return found


def _written_in(kind: type) -> dict[str, FunctionType]:
    """The plain functions of a class and its bases, but for those of torch and those that Python calls itself."""
    found: dict[str, FunctionType] = {}
    for base in reversed(kind.__mro__):
        if not is_installed(module_of(base)):
            found |= {name: value for name, value in vars(base).items() if isinstance(value, FunctionType)}
    members = {name: inspect.getattr_static(kind, name) for name in found}
    return {
        name: function
        for name, function in found.items()
        if members[name] is function and name != "forward" and not name.startswith("__")
    }


def _only_reads(kind: type, name: str, asked: dict[str, Any]) -> bool:
    """Whether a member that is a function or none, and those that it asks `self` for, only read attributes of it."""
    asked[name] = None
    match inspect.getattr_static(kind, name, None):
        case FunctionType() as function:
            pass
        case property(fget=FunctionType() as function):
            pass
        case staticmethod():
            return True
        case member:
            return not hasattr(type(member), "__get__")  # which might be given `self`
    code = function.__code__
    if hasattr(function, "__wrapped__") or code.co_argcount == 0 or code.co_flags & _GIVES_OTHERS:
        return False
    read = _read_of(code, code.co_varnames[0])
    if read is None or not read.isdisjoint(("forward", "__class__", "__dict__")):
        return False
    return all(_only_reads(kind, inner, asked) for inner in sorted(read - asked.keys()))


def _read_of(code: CodeType, name: str) -> frozenset[str] | None:
    """The attributes of a variable that code reads; None if it may do anything else with it."""
    read = set()
    for each in codes_in(code):
        if not _OTHER_WAYS.isdisjoint(each.co_names):
            return None
        steps = [step for step in dis.get_instructions(each) if step.opname not in ("NOP", "EXTENDED_ARG", "CACHE")]
        for step, after in zip(steps, (*steps[1:], steps[-1]), strict=True):
            if step.opcode not in dis.haslocal and step.opcode not in dis.hasfree:
                continue
            named = step.argval if isinstance(step.argval, tuple) else (step.argval,)  # one step may load two
            if name not in named or step.opname in _OF_CLOSURES:
                continue
            if not step.opname.startswith("LOAD") or named.index(name) != len(named) - 1 or after.opname not in _READS:
                return None
            read.add(after.argval)
    return frozenset(read)


def view(module: nn.Module, name: str) -> nn.Module:
    """A module with the attributes of another one, whose forward is a method of that."""
    kind: Any = type(module)
    made: nn.Module = object.__new__(_class_of_view(kind, name))
    made.__dict__ = module.__dict__
    return made


@functools.lru_cache(maxsize=1024)
def _class_of_view(kind: Any, name: str) -> Any:
    names = {"__module__": kind.__module__, "__qualname__": f"{kind.__qualname__}.{name}"}
    return type(kind)(f"{kind.__name__}.{name}", (View, kind), {"forward": methods_of(kind)[name].function, **names})


class OpenedMethod:
    """Runs a method as written, with parts for the modules inside.

    Args:
        part: What the method gets for `self`, which is alive while its method is called.
        function: The method.
    """

    def __init__(self, part: ref[Any], function: Callable[..., Any]) -> None:
        self._part = part
        self._function = function

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run it."""
        return self._function(self._part(), *args, **kwargs)


def takes_tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether there is a tensor among the arguments themselves; without one there is little to compute."""
    return any(isinstance(value, torch.Tensor) for value in (*args, *kwargs.values()))

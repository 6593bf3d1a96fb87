"""Parts: what stands for a module inside of a served one while the code around it runs as written.

A part has the attributes of its module, because it has the same `__dict__`, and the modules in it are parts again. A
call of it is served. The modules themselves are never changed: code outside of such a forward never meets a part.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from opwright.binding.environment import is_compiling, is_quiet
from opwright.nn.parts.cut import Cut
from opwright.nn.parts.methods import Method, methods_of, takes_tensors
from opwright.nn.parts.twins import twin_for

SERVING = "_opwright_serving"  # the slot of served modules
_MOST_GONE = 64
_OFTEN, _REST = 16, 64  # after 16 calls that kernels gain nothing for, 64 are not looked at
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_any_global_hook: Callable[[], bool] = nn.modules.module._has_any_global_hook


class Family:
    """All parts of one served module, so that a module which is met twice is served once.

    Args:
        serve: `(module, cut, family) -> served module`.
        serve_method: `(part, name) -> served module`, whose forward is the method of that name.
    """

    def __init__(
        self, serve: Callable[[nn.Module, Cut, Family], Any], serve_method: Callable[[Part, str], Any]
    ) -> None:
        self._serve = serve
        self.serve_method = serve_method
        self.parts: WeakValueDictionary[tuple[int, type, int | None], Part] = WeakValueDictionary()

    def serve(self, module: nn.Module, cut: Cut) -> Any:
        """Make what serves a module inside."""
        return self._serve(module, cut, self)


@dataclass(slots=True, eq=False)
class Served:
    """What serves the calls of a part, or of a method of one.

    Attributes:
        get: Gives the served module; None before the first call.
        rest: How many more calls are not looked at, because kernels gained nothing for those before.
        rests_in: The training flag then.
    """

    get: Callable[[], Any] | None = None
    rest: int = 0
    rests_in: bool = False

    def rests(self, *, is_training: bool) -> bool:
        """Whether a call is not looked at."""
        if self.rest == 0 or is_training is not self.rests_in:
            return False
        self.rest -= 1
        return True

    def call(self, server: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_training: bool) -> Any:
        """Serve a call."""
        result = server.forward(*args, **kwargs)
        if server._opwright_serving.left_calls >= _OFTEN:
            self.rest, self.rests_in, server._opwright_serving.left_calls = _REST, is_training, 0
        return result


@dataclass(slots=True, eq=False)
class Inside:
    """What a part keeps beside the attributes of its module.

    Attributes:
        module: The module.
        cut: How it is served.
        family: All parts.
        served: What serves its calls.
        methods: What serves those of its methods, by name.
        made: What stands for the modules inside, by identity: the module, its class then, and the part.
        listed: Those in order; None before they are asked for.
    """

    module: nn.Module
    cut: Cut
    family: Family
    served: Served
    methods: dict[str, Served] = field(default_factory=dict)
    made: dict[int, tuple[nn.Module, type, nn.Module]] = field(default_factory=dict)
    listed: Listed | None = None

    def form(self, name: str, child: nn.Module) -> nn.Module:
        """What stands for a module inside: a part, or the module itself if nothing of it can be served."""
        known = self.made.get(id(child))
        if known is not None and known[0] is child and known[1] is type(child):
            return known[2]
        if len(self.made) > _MOST_GONE + len(self.module._modules):
            self.made.clear()
        made = self._made(self.cut.inside(name, child), child)
        self.made[id(child)] = (child, type(child), made)
        return made

    def _made(self, cut: Cut, child: nn.Module) -> nn.Module:
        if why_not(child) is not None or not (cut.tries(child) or cut.opens(child)):
            return child
        key = (id(child), type(child), cut.depth)  # a parametrization gives a module another class
        known = self.family.parts.get(key)
        return known or self.family.parts.setdefault(key, part_of(child, cut, self.family))


class Part(nn.Module):
    """A mixin that comes before a module's class, which does not hear of it as of a subclass."""

    __slots__ = ("_opwright_inside",)
    _written_as: type[nn.Module]
    _has_own_call: bool
    _opwright_inside: Inside

    def __init_subclass__(cls) -> None:
        """Register nothing: what the module's class does for subclasses it has done for itself."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module: one with hooks, which are given it, itself."""
        inside = self._opwright_inside
        if inside.served.rests(is_training=inside.module.training) or has_hooks(inside.module) or is_compiling():
            return inside.module(*args, **kwargs)
        if type(self)._has_own_call:
            return super().__call__(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Serve the forward."""
        inside = self._opwright_inside
        if inside.served.get is None:
            made = inside.family.serve(inside.module, inside.cut)
            inside.served.get = lambda: made
        return inside.served.call(inside.served.get(), args, kwargs, is_training=inside.module.training)

    def __getattr__(self, name: str) -> Any:
        """A module inside as a part; the rest as it is."""
        found = super().__getattr__(name)
        return self._opwright_inside.form(name, found) if isinstance(found, nn.Module) else found

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the module, which keeps no parts."""
        super().__setattr__(name, itself(value))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Copy and pickle the module."""
        return itself, (self._opwright_inside.module,)

    def _replicate_for_data_parallel(self) -> Any:
        return self._opwright_inside.module._replicate_for_data_parallel()

    @property
    def _modules(self) -> Any:
        inside, held = self._opwright_inside, self.__dict__["_modules"]
        if inside.listed is None or not inside.listed.is_of(held):
            inside.listed = Listed(held, inside.form)
        return inside.listed

    @_modules.setter
    def _modules(self, modules: Mapping[str, Any]) -> None:
        self.__dict__["_modules"] = {name: itself(module) for name, module in modules.items()}


class Listed(dict[str, Any]):
    """The modules inside, as parts; what is written goes to the module."""

    def __init__(self, held: dict[str, Any], form: Callable[[str, nn.Module], nn.Module]) -> None:
        super().__init__((name, each if each is None else form(name, each)) for name, each in held.items())
        self._held = held
        self._form = form
        self._was = _members(held)

    def is_of(self, held: dict[str, Any]) -> bool:
        """Whether the module has the same modules inside, of the same classes, as when they were listed."""
        now = _members(held)
        return len(now) == len(self._was) and all(map(operator.is_, now, self._was))

    def __setitem__(self, name: str, module: Any) -> None:
        self._held[name] = itself(module)
        super().__setitem__(name, module if module is None else self._form(name, self._held[name]))

    def __delitem__(self, name: str) -> None:
        del self._held[name]
        super().__delitem__(name)

    pop, popitem, clear = MutableMapping.pop, MutableMapping.popitem, MutableMapping.clear
    update, setdefault = MutableMapping.update, MutableMapping.setdefault


def _members(held: dict[str, Any]) -> tuple[Any, ...]:
    return (*held.keys(), *held.values(), *map(type, held.values()))


def has_hooks(module: nn.Module) -> bool:
    """Whether a call of a module does more than to call its forward."""
    held = module.__dict__
    return any(map(held.get, _HOOKS)) or "_compiled_call_impl" in held or _any_global_hook()


def part_of(module: nn.Module, cut: Cut, family: Family, server: Callable[[], Any] | None = None) -> Part:
    """Make what stands for a module."""
    kind: Any = type(module)
    part: Part = object.__new__(_class_for(kind))
    part.__dict__ = module.__dict__
    object.__setattr__(part, "_opwright_inside", Inside(module, cut, family, Served(server)))
    return part


def itself(value: Any) -> Any:
    """The module that a part stands for; another value as it is."""
    return value._opwright_inside.module if isinstance(value, Part) else value


def _served_method(name: str, method: Method) -> Callable[..., Any]:
    """A method of a part, which serves that of its module where the user left it open what is served."""

    @functools.wraps(method.function)
    def call(part: Part, *args: Any, **kwargs: Any) -> Any:
        inside = part._opwright_inside
        is_free = inside.cut.is_free and is_quiet() and takes_tensors(args, kwargs)
        if not is_free or "forward" in part.__dict__ or not method.is_as_it_was():
            return getattr(super(type(part), part), name)(*args, **kwargs)
        served = inside.methods.get(name) or inside.methods.setdefault(name, Served())
        if served.rests(is_training=inside.module.training):
            return method.function(part, *args, **kwargs)
        if served.get is None:
            made = inside.family.serve_method(part, name)
            served.get = lambda: made
        return served.call(served.get(), args, kwargs, is_training=inside.module.training)

    return call


@functools.lru_cache(maxsize=256)
def _class_for(written: Any) -> type[Part]:
    namespace: dict[str, Any] = {
        "_written_as": written,
        "_has_own_call": written.__call__ is not nn.Module.__call__,
        "__module__": written.__module__,
        "__qualname__": written.__qualname__,
        "__doc__": written.__doc__,
        "__class__": property(lambda part: type(part)._written_as),
    }
    if written.__eq__ is object.__eq__ and written.__hash__ is object.__hash__:
        namespace |= {
            "__eq__": lambda part, other: itself(part) is itself(other),
            "__hash__": lambda part: hash(itself(part)),
        }
    namespace |= {name: _served_method(name, method) for name, method in methods_of(written).items()}
    kind = twin_for(written)
    if kind is None:
        raise TypeError(f"{written.__qualname__} has a metaclass of its own")
    made: type[Part] = type.__call__(kind, written.__name__, (Part, written), namespace)
    return made


def is_special(module: nn.Module) -> bool:
    """Whether an instance of a subclass would behave otherwise than the module."""
    kind: Any = type(module)
    return _is_special(kind)


def why_not(module: nn.Module) -> str | None:
    """Why nothing can stand for a module in a forward; None if something can."""
    if isinstance(module, Part) or hasattr(type(module), SERVING):
        return "it is served already"
    if isinstance(module, torch.jit.ScriptModule):
        return "it is scripted"
    if isinstance(module, LazyModuleMixin):
        return "its parameters have no shape yet"
    if is_special(module):
        return "its class changes what a call, or a subclass, does"
    return None


@functools.lru_cache(maxsize=1024)
def _is_special(kind: Any) -> bool:
    if kind._call_impl is not nn.Module._call_impl:
        return True
    try:
        _class_for(kind)
    except TypeError:  # its slots leave no room for ours, or its metaclass may look at subclasses
        return True
    return False

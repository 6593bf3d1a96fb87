"""`opwright.module`: a module whose forward runs as one operator."""

from __future__ import annotations

import contextlib
import copy
import functools
import types
import weakref
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar, cast

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from opwright.binding.environment import is_compiling, is_quiet
from opwright.binding.own_errors import is_wanted
from opwright.binding.rungs import RungName
from opwright.binding.tape import LEFT
from opwright.derivation.saving.save_policy import SavePolicy
from opwright.errors import ModuleUnsupported
from opwright.introspection import signature_of
from opwright.nn.parts.cut import Choose, Cut, read_cut
from opwright.nn.parts.methods import OpenedMethod, methods_of, view
from opwright.nn.parts.opened import Opened
from opwright.nn.parts.opening import has_servable, why_closed
from opwright.nn.parts.part import SERVING, Family, Part
from opwright.nn.parts.repeats import why_by_parts
from opwright.nn.serving import Serving
from opwright.nn.tree import tree
from opwright.report.shown import Page

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class ServedModule(nn.Module):
    """A mixin that comes before a module's class and runs its forward as an operator.

    It keeps its own state in a slot, because the module shares its attributes with the original.
    """

    __slots__ = (SERVING,)
    _written_as: type[nn.Module]
    _cut: Cut

    def __init_subclass__(cls) -> None:
        """Register nothing: what the module's class does for subclasses it has done for itself."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module's original forward, by kernels where there are any."""
        if is_compiling():
            return super().forward(*args, **kwargs)
        serving = self._served()
        if serving.play is not None:
            try:
                result = serving.play(args, kwargs)
            except Exception as error:  # what it means is found out slowly, unless buffers may have changed
                if serving.changes_buffers or is_wanted(error):
                    raise
                result = NotImplemented
            rung = "composed" if result is LEFT else serving.rung
            if result is not NotImplemented and (serving.unusual_rungs or serving.usual_rung is not rung):
                serving.remember_usual(rung)
            if result is LEFT:
                opened = serving.opened
                if opened is not None:
                    return opened.run(args, kwargs)
                serving.left_calls += not serving.has_kernels
                return super().forward(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if not is_quiet():
            return super().forward(*args, **kwargs)
        return serving.serve(self, args, kwargs)

    @property
    def last_rung(self) -> RungName | None:
        """The rung that served the last call of this thread; None before the first."""
        return self._served().last_rung

    def _served(self) -> Serving:
        try:
            return object.__getattribute__(self, SERVING)  # type: ignore[no-any-return]
        except AttributeError:
            return _begin(self, self._written(), Family(_serve_inside, _serve_method))

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; serve anew if it is the class, which a parametrization changes."""
        super().__setattr__(name, value)
        if name == "__class__":
            with contextlib.suppress(AttributeError):  # there was no call yet
                object.__delattr__(self, SERVING)

    def __copy__(self) -> Any:
        return self._copied(copy.copy, {})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self._copied(lambda value: copy.deepcopy(value, memo), memo)

    def _copied(self, duplicate: Callable[[Any], Any], memo: dict[int, Any]) -> Any:
        """Copy the original module, and serve the result again; a class that a parametrization made has both."""
        if _is_made(type(self)):
            serve, (written,) = self.__reduce_ex__(4)
            return serve(duplicate(written))
        memo[id(self)] = copied = object.__new__(type(self))
        copied.__dict__ = duplicate(self.__dict__)
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickle the original module, and serve the result again."""
        if not _is_made(type(self)):  # torch says why it cannot be pickled
            return super().__reduce_ex__(protocol)  # type: ignore[return-value]
        cut = type(self)._cut
        return functools.partial(module, save=cut.save, depth=cut.depth, parts=cut.parts), (self._written(),)

    def _written(self) -> nn.Module:
        """The original module, with the same state."""
        kind: Any = type(self)
        written: nn.Module = object.__new__(_plain(kind))
        written.__dict__ = self.__dict__
        return written


def _is_made(kind: type) -> bool:
    """Whether a class was made here, and not on top of such a one, as a parametrization does."""
    return "_written_as" in vars(kind)


@functools.lru_cache(maxsize=256)
def _plain(kind: Any) -> Any:
    """The class of the original module; for one that was made later, one with the same members."""
    if not issubclass(kind, ServedModule):
        return kind
    if _is_made(kind):
        return kind._written_as
    bases = tuple(map(_plain, kind.__bases__))

    def find(self: Any, name: str) -> Any:
        """Look it up as of now: each parameter that is parametrized adds a property."""
        found = vars(kind).get(name)
        return found.__get__(self, kind) if isinstance(found, property) else super(plain, self).__getattr__(name)

    plain = type(kind)(kind.__name__, bases, {"__getattr__": find, "__module__": kind.__module__})
    return plain


def _as_written(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return super(ServedModule, module).forward(*args, **kwargs)


def _begin(served: ServedModule, written: nn.Module, family: Family) -> Serving:
    """Attach what serves calls; it keeps neither the module nor its tensors alive."""
    cut, this, origin = type(served)._cut, weakref.ref(served), weakref.ref(written)
    opens = cut.opens(written) and has_servable(written)
    closed = why_closed(written) if opens else None

    def make_opened() -> Opened | None:
        module = origin() or ((alive := this()) and alive._written())
        return Opened(module, cut, family, this) if module is not None else None

    can_open = opens and closed is None
    by_parts = why_by_parts(written.children()) if can_open and cut.is_free else None
    tries = cut.tries(written) and by_parts is None
    opened = make_opened if can_open else None
    serving = Serving(served, _as_written, cut, opened, closed or by_parts, tries=tries)
    object.__setattr__(served, SERVING, serving)
    return serving


def _serve_inside(nn_module: nn.Module, cut: Cut, family: Family) -> ServedModule:
    served = _made(nn_module, cut)
    _begin(served, nn_module, family)
    return served


def _serve_method(part: Part, name: str) -> ServedModule:
    inside = part._opwright_inside
    kind: Any = type(inside.module)
    cut = replace(inside.cut, name=f"{inside.cut.name}.{name}()".lstrip("."), is_inside=True, is_asked_for=False)
    served, method, this = _made(view(inside.module, name), cut), methods_of(kind)[name], weakref.ref(part)
    by_parts = why_by_parts(each for name, each in inside.module.named_children() if name in method.members)

    def make_opened() -> OpenedMethod:
        return OpenedMethod(this, method.function)

    only = frozenset(method.members)
    serving = Serving(served, _as_written, cut, make_opened, by_parts, tries=by_parts is None, only=only)
    object.__setattr__(served, SERVING, serving)
    return served


def _made(nn_module: nn.Module, cut: Cut) -> ServedModule:
    written: Any = type(nn_module)
    can_be_shared = isinstance(cut.parts, Hashable)
    make = _class_for if can_be_shared else _class_for.__wrapped__
    served: ServedModule = object.__new__(make(written, cut, repr(cut.asked)))  # in which 1 and 1.0 differ
    served.__dict__ = nn_module.__dict__
    return served


@functools.lru_cache(maxsize=256)
def _class_for(written: Any, cut: Cut, asked: str) -> Any:
    """The class of modules that are served so: one for all of a class, as code may ask for it."""
    namespace = {"_written_as": written, "_cut": cut, "__module__": written.__module__, "__doc__": written.__doc__}
    if not hasattr(written, "explain"):
        namespace["explain"] = _explain
    namespace["forward"] = _with_signature_of(written.forward)
    return type(written.__name__, (ServedModule, written), namespace)


def _with_signature_of(written: Any) -> Any:
    """The forward of served modules, which says that it takes what a class's own does.

    Exporters name inputs by this, and trainers choose the columns of a table.
    """
    plain = ServedModule.forward
    forward = types.FunctionType(plain.__code__, plain.__globals__, plain.__name__, None, plain.__closure__)
    forward.__doc__ = written.__doc__ or plain.__doc__
    with contextlib.suppress(ValueError, TypeError):  # what is written in C may not tell
        forward.__signature__ = signature_of(written)  # type: ignore[attr-defined]
    return forward


def _explain(served: ServedModule) -> str:
    """The modules as a tree, each with what served its last calls, as text."""
    return Page(tree(served, served._served()))


def module(
    nn_module: AnyModule, *, save: SavePolicy = "auto", depth: int | None = None, parts: Choose | None = None
) -> AnyModule:
    """Make a module whose forward runs as one operator, or by several that serve parts of it.

    The result is an instance of a subclass of `nn_module`'s class and shares everything with it: parameters, buffers,
    attributes, hooks and the training flag. Its forward, as one function of arguments, parameters and buffers, is
    derived once for each state of what it reads: training flags, attributes of any kind, shapes of parameters and
    buffers. If there are no kernels for all of it, because it prints, say, decides by values of a tensor, has hooks
    inside or more than 64 tensors, the forward runs as written, and the modules that it calls are served, each as a
    whole or by its parts again. So are those of a model that repeats a block, if all of it would take long to derive.
    The original forward runs alone after eight states, and under transforms, autocast and compilers. `last_rung` says
    what served the last call, and `explain()` what serves each of the modules inside.

    Args:
        nn_module: A module whose forward is written in Python.
        save: What the backward pass may keep, as for `opwright.operator`.
        depth: How many levels below `nn_module` modules are served, each as a whole or not at all; forwards above
            run as written. 0 is `nn_module` itself, 1 are the modules that it calls. None serves the largest parts
            that can be served.
        parts: `(name, module) -> bool` chooses the modules instead that are served as a whole, by their names as in
            `named_modules()`; all others run as written. It is not asked about modules inside of a chosen one.

    Returns:
        The module to call; `nn_module` itself is unchanged, and so are the modules inside.

    Raises:
        ModuleUnsupported: If it is not a module, is scripted, or is lazy and has not run yet.
        SaveRefused: If `save` is no policy.
        PartsRefused: If `depth` is no number of levels, `parts` cannot be called or gives no bool, or both are given.
    """
    cut = read_cut(save, depth, parts)
    if isinstance(nn_module, ServedModule):
        same = repr(type(nn_module)._cut.asked) == repr(cut.asked)  # 1 and 1.0 differ
        how: dict[str, Any] = {"save": cut.save, "depth": depth, "parts": parts}
        return nn_module if same else module(cast("AnyModule", nn_module._written()), **how)
    if not isinstance(nn_module, nn.Module):
        raise ModuleUnsupported(
            f"a {type(nn_module).__name__} is not a torch.nn.Module", hint="use opwright.operator for functions"
        )
    if isinstance(nn_module, torch.jit.ScriptModule):
        raise ModuleUnsupported(
            f"{type(nn_module).__name__} is scripted", hint="pass the module that it was scripted from"
        )
    if slotted := next((kind for kind in type(nn_module).__mro__ if vars(kind).get("__slots__")), None):
        raise ModuleUnsupported(
            f"{slotted.__name__} has __slots__, which leave no room for a subclass to serve it", hint="remove __slots__"
        )
    if any(isinstance(inner, LazyModuleMixin) for inner in nn_module.modules()):
        raise ModuleUnsupported(
            f"{type(nn_module).__name__} has lazy parameters that have no shape yet", hint="call it once first"
        )
    return cast("AnyModule", _made(nn_module, cut.of(nn_module)))

"""`opwright.module`: a module whose forward runs as one operator."""

from __future__ import annotations

import functools
from typing import Any, TypeVar, cast

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from opwright.binding.environment import is_compiling, is_quiet
from opwright.binding.own_errors import is_wanted
from opwright.binding.rungs import RungName
from opwright.binding.tape import LEFT
from opwright.derivation.save_policy import SavePolicy, read_policy
from opwright.errors import ModuleUnsupported
from opwright.nn.serving import Serving

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class ServedModule(nn.Module):
    """A mixin that comes before a module's class and runs its forward as an operator.

    It keeps its own state in a slot, because the module shares its attributes with the original.
    """

    __slots__ = ("_serving",)
    _written_as: type[nn.Module]
    _save_policy: SavePolicy

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
            return object.__getattribute__(self, "_serving")  # type: ignore[no-any-return]
        except AttributeError:
            serving = Serving(self, _as_written, self._save_policy)
            object.__setattr__(self, "_serving", serving)
            return serving

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Copy and pickle the original module, and serve the result again."""
        return functools.partial(module, save=self._save_policy), (self._written(),)

    def _written(self) -> nn.Module:
        """The original module, with the same state."""
        written = object.__new__(self._written_as)
        written.__dict__ = self.__dict__
        return written


def _as_written(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return super(ServedModule, module).forward(*args, **kwargs)


def module(nn_module: AnyModule, *, save: SavePolicy = "auto") -> AnyModule:
    """Make a module whose forward runs as one operator.

    The result is an instance of a subclass of `nn_module`'s class and shares everything with it: parameters, buffers,
    attributes, hooks and the training flag. Its forward, as one function of arguments, parameters and buffers, is
    derived once for each state of what it reads: training flags, attributes of any kind, shapes of parameters and
    buffers. It falls back to the original forward if there is no kernel, if a submodule has hooks, after eight states,
    and under transforms, autocast and compilers; `last_rung` says what served the last call.

    Args:
        nn_module: A module whose forward is written in Python.
        save: What the backward pass may keep, as for `opwright.operator`.

    Returns:
        The module to call; `nn_module` itself is unchanged.

    Raises:
        ModuleUnsupported: If it is not a module, is scripted, or is lazy and has not run yet.
        SaveRefused: If `save` is no policy.
    """
    policy = read_policy(save, None)
    if isinstance(nn_module, ServedModule):
        same = repr(nn_module._save_policy) == repr(policy)  # 1 and 1.0 differ
        return nn_module if same else module(cast("AnyModule", nn_module._written()), save=policy)
    if not isinstance(nn_module, nn.Module):
        raise ModuleUnsupported(
            f"a {type(nn_module).__name__} is not a torch.nn.Module", hint="use opwright.operator for functions"
        )
    if isinstance(nn_module, torch.jit.ScriptModule):
        raise ModuleUnsupported(
            f"{type(nn_module).__name__} is scripted", hint="pass the module that it was scripted from"
        )
    if any(isinstance(inner, LazyModuleMixin) for inner in nn_module.modules()):
        raise ModuleUnsupported(
            f"{type(nn_module).__name__} has lazy parameters that have no shape yet", hint="call it once first"
        )
    written = type(nn_module)
    namespace = {
        "_written_as": written,
        "_save_policy": policy,
        "__module__": written.__module__,
        "__doc__": written.__doc__,
    }
    served: AnyModule = object.__new__(type(written.__name__, (ServedModule, written), namespace))
    served.__dict__ = nn_module.__dict__
    return served

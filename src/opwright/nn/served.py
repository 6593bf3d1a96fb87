"""`opwright.module`: a module whose forward runs as one operator."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from opwright.binding.environment import is_quiet
from opwright.binding.rungs import RungName
from opwright.errors import ModuleUnsupported
from opwright.nn.serving import Serving

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class ServedModule(nn.Module):
    """A mixin before a module's class: its forward runs as an operator.

    The serving stands in a slot, apart from the attributes, which the module shares with the one it was made from.
    """

    __slots__ = ("_serving",)
    _written_as: type[nn.Module]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the forward that the module was written with, by kernels where there are any."""
        serving = self._served()
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
            serving = Serving(_as_written)
            object.__setattr__(self, "_serving", serving)
            return serving

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Copied and pickled as the module it was made from, and served again."""
        written = object.__new__(self._written_as)
        written.__dict__ = self.__dict__
        return module, (written,)


def _as_written(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return super(ServedModule, module).forward(*args, **kwargs)


def module(nn_module: AnyModule) -> AnyModule:
    """Make a module whose forward runs as one operator.

    What is returned has the class of `nn_module` among its own and shares everything with it: parameters, buffers,
    attributes, hooks and the training flag are one and the same. The forward, as one function of its arguments,
    parameters and buffers, is derived once for each training flag and each other value of plain attributes in the
    module; where there is no kernel, where a module inside has hooks, and under transforms, autocast and compilers,
    it runs as it was written. `last_rung` tells which it was.

    Args:
        nn_module: Any module with a forward in Python.

    Returns:
        The module to call; `nn_module` itself stays as it is.

    Raises:
        ModuleUnsupported: If it is no module, a scripted one, or a lazy one that has not run yet.
    """
    if isinstance(nn_module, ServedModule):
        return nn_module
    if not isinstance(nn_module, nn.Module):
        raise ModuleUnsupported(
            f"a {type(nn_module).__name__} is no torch.nn.Module", hint="use opwright.operator for functions"
        )
    if isinstance(nn_module, torch.jit.ScriptModule):
        raise ModuleUnsupported(f"{type(nn_module).__name__} is scripted", hint="give the module that it was made from")
    if any(isinstance(inner, LazyModuleMixin) for inner in nn_module.modules()):
        raise ModuleUnsupported(
            f"{type(nn_module).__name__} has lazy parameters that have no shape yet", hint="call it once before"
        )
    written = type(nn_module)
    namespace = {"_written_as": written, "__module__": written.__module__, "__doc__": written.__doc__}
    served: AnyModule = object.__new__(type(written.__name__, (ServedModule, written), namespace))
    served.__dict__ = nn_module.__dict__
    return served

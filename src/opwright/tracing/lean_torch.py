"""A fake-tensor mode without the cost of importing torch's compiler.

`FakeTensorMode` and `ShapeEnv` read configuration values out of torch's compiler, and so import all of it: 0.8 s of a
first call that should last about one. Here the module with those values is offered alone for the time of a trace. If
the compiler is loaded already nothing is replaced; if a trace fails without it, it is loaded and the trace runs again.
This file is the place for private hooks of tracing; tests/tracing/test_lean_torch.py guards each.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch
import torch._decomp
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import SLoc
from torch._logging import _internal
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from opwright.errors import OpwrightError
from opwright.toolchain.forks import Lock
from opwright.tracing.unseen import Unseen

_COMPILER = "torch._dynamo"
_CONFIGURATION = "torch._dynamo.config"
_BACKEND = "torch._inductor"
_VALIDATOR = "torch.fx.experimental.validator"
_lock = Lock()
_configuration: dict[str, ModuleType] = {}  # kept from one time to the next: reading it takes 7 ms

Result = TypeVar("Result")


class LeanShapeEnv(ShapeEnv):
    """Symbolic sizes without a stack summary for every guard, which would import `torch.export`."""

    def _get_stack_summary(self, is_debug: bool = False, framework_loc: str | None = None) -> tuple[SLoc, str]:
        return SLoc(None, None), ""


_dispatch = FakeTensorMode.__torch_dispatch__


class LeanFakeTensorMode(Unseen, FakeTensorMode):
    """A fake-tensor mode whose dispatch is not wrapped for the compiler: the wrapper would import it."""

    __torch_dispatch__ = getattr(_dispatch, "__wrapped__", _dispatch)


def fake_mode() -> tuple[FakeTensorMode, ShapeEnv]:
    """Make a fake-tensor mode with symbolic sizes; every input dimension gets a symbol of its own.

    It remembers no results by their arguments: with symbols that belong to one trace hardly any are found again, and
    writing them down took half the time of a derivation.
    """
    sizes = LeanShapeEnv(duck_shape=False, specialize_zero_one=True)
    mode = LeanFakeTensorMode(shape_env=sizes)
    mode.cache_enabled = False
    return mode, sizes


def without_compiler(work: Callable[[], Result]) -> Result:
    """Do work that uses a `fake_mode`, importing torch's compiler only if it turns out to be needed.

    What fails is done again, the compiler at hand, and with torch's Python dispatcher: it knows formulas for symbolic
    sizes that the one in C++ does not, and takes twice the time.
    """
    with _lock:
        try:
            with nullcontext() if _COMPILER in sys.modules else _stand_ins(), _in_silence():
                return work()
        except OpwrightError:
            raise
        except Exception:
            importlib.import_module(_COMPILER)
    with enable_python_dispatcher(), _in_silence():
        return work()


@contextmanager
def _in_silence() -> Iterator[None]:
    """Keep torch from logging a failure: it is raised, or not the last word."""
    log = logging.getLogger(FakeTensorMode.__module__)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@cache
def core_decompositions() -> Mapping[OpOverload, Callable[..., Any]]:
    """PyTorch's table of decompositions into core ATen operations, as a plain dictionary.

    The public `core_aten_decompositions` wraps the same table in a class of `torch.export`, whose import costs 0.3 s.
    """
    table = getattr(torch._decomp, "_core_aten_decompositions_post_autograd", None)
    return dict((table or torch._decomp.core_aten_decompositions)())


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Offer the compiler's configuration without the compiler, and leave no trace of it behind."""
    compiler, validator = _Compiler(), _Validator()
    before = set(sys.modules)
    handlers, _internal.trace_log.handlers = _internal.trace_log.handlers, []  # they import the compiler to format
    sys.modules.update({_COMPILER: compiler, _VALIDATOR: sys.modules.get(_VALIDATOR, validator), **_configuration})
    try:
        _configuration[_CONFIGURATION] = importlib.import_module(_CONFIGURATION)
        setattr(compiler, _CONFIGURATION.rpartition(".")[2], _configuration[_CONFIGURATION])
        yield
    finally:
        _internal.trace_log.handlers = handlers
        for name in set(sys.modules) - before:
            if name == _VALIDATOR or name.startswith((_COMPILER, _BACKEND)):
                del sys.modules[name]
        for package in (_COMPILER, _BACKEND):
            if package not in sys.modules:
                vars(torch).pop(package.removeprefix("torch."), None)
        compiler.forget()


class _Compiler(ModuleType):
    """A package that holds nothing but its configuration, and "disables" functions by leaving them alone."""

    def __init__(self) -> None:
        super().__init__(_COMPILER)
        self.__path__ = [str(Path(torch.__file__).parent / "_dynamo")]
        self._left_alone: list[Any] = []

    def disable(self, function: Callable[..., Any], *_: Any, **__: Any) -> Callable[..., Any]:
        self._left_alone.append(function)
        return function

    def forget(self) -> None:
        """Undo what torch remembered of `disable`, so that the real compiler is asked later."""
        for function in self._left_alone:
            vars(function).pop("__dynamo_disable", None)


class _Validator(ModuleType):
    """The guard validator, switched off."""

    def __init__(self) -> None:
        super().__init__(_VALIDATOR)

    @staticmethod
    def translation_validation_enabled() -> bool:
        return False

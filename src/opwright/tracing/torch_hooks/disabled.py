"""Functions of torch that its compiler must leave alone, without importing the compiler to say so.

`torch._disable_dynamo` wraps a function in one that asks the compiler, at its first call, for a function that it leaves
alone, and remembers that as `__dynamo_disable`. Until the compiler is imported there is nobody to leave alone: here
such functions remember one that runs them as they are, marked as the compiler marks its own. As soon as the compiler is
there, that one asks it, as torch would have.
"""

from __future__ import annotations

import functools
import gc
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch._C._dynamo.eval_frame as frames
from torch._compile import _disable_dynamo

_COMPILER = "torch._dynamo"
_REMEMBERED = "__dynamo_disable"
_MARK = "_torchdynamo_disable"


@functools.cache
def spare_the_compiler() -> None:
    """Have the functions that exist by now run without importing the compiler."""
    if _COMPILER in sys.modules:
        return
    for function, recursive in _disabled_functions():
        vars(function).setdefault(_REMEMBERED, _as_it_is(function, recursive))


def _as_it_is(function: Callable[..., Any], recursive: bool) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        if _COMPILER not in sys.modules:
            return function(*args, **kwargs)
        compiler: Any = importlib.import_module(_COMPILER)  # which waits for who is importing it
        real = compiler.disable(function, recursive, wrapping=False)
        if vars(function).get(_REMEMBERED) is run:
            vars(function)[_REMEMBERED] = real
        return real(*args, **kwargs)

    setattr(run, _MARK, True)
    _skip(run.__code__)
    return run


def _skip(code: types.CodeType) -> None:
    """Have the compiler not compile code where it runs by itself, as it would any that is not torch's."""
    hooks: Any = frames
    if hasattr(hooks, "skip_code"):  # of an earlier PyTorch
        hooks.skip_code(code)
    else:
        here = hooks._FrameExecStrategy(hooks._FrameAction.SKIP, hooks._FrameAction.DEFAULT)
        hooks.set_code_exec_strategy(code, here)


def _disabled_functions() -> Iterator[tuple[Callable[..., Any], bool]]:
    """What `_disable_dynamo` has wrapped so far, and whether what it calls is to be left alone too."""
    code = _disable_dynamo(lambda: None).__code__
    for wrapper in gc.get_referrers(code):
        if isinstance(wrapper, types.FunctionType):
            held = dict(zip(code.co_freevars, wrapper.__closure__ or (), strict=True))
            yield held["fn"].cell_contents, held["recursive"].cell_contents

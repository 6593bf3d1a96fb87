"""Functions of torch that its compiler must skip, without importing the compiler.

`torch._disable_dynamo` wraps a function so that its first call imports the compiler, gets a disabled version and keeps
that as `__dynamo_disable`. Before the compiler is imported this is unnecessary: here such functions keep a version that
runs them directly, with the compiler's own mark. Once the compiler is imported, that version asks it, as torch would.
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
    """Let all functions wrapped by now run without importing the compiler."""
    if _COMPILER in sys.modules:
        return
    for function, recursive in _disabled_functions():
        vars(function).setdefault(_REMEMBERED, _as_it_is(function, recursive))


def _as_it_is(function: Callable[..., Any], recursive: bool) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        if _COMPILER not in sys.modules:
            return function(*args, **kwargs)
        compiler: Any = importlib.import_module(_COMPILER)  # which waits for the importing thread
        real = compiler.disable(function, recursive, wrapping=False)
        if vars(function).get(_REMEMBERED) is run:
            vars(function)[_REMEMBERED] = real
        return real(*args, **kwargs)

    setattr(run, _MARK, True)
    _skip(run.__code__)
    return run


def _skip(code: types.CodeType) -> None:
    """Keep the compiler from compiling code that runs by itself, as it would for any code outside of torch."""
    hooks: Any = frames
    if hasattr(hooks, "skip_code"):  # of an earlier PyTorch
        hooks.skip_code(code)
    else:
        here = hooks._FrameExecStrategy(hooks._FrameAction.SKIP, hooks._FrameAction.DEFAULT)
        hooks.set_code_exec_strategy(code, here)


def _disabled_functions() -> Iterator[tuple[Callable[..., Any], bool]]:
    """The functions that `_disable_dynamo` has wrapped by now, and whether their callees are skipped too."""
    code = _disable_dynamo(lambda: None).__code__
    for wrapper in gc.get_referrers(code):
        if isinstance(wrapper, types.FunctionType):
            held = dict(zip(code.co_freevars, wrapper.__closure__ or (), strict=True))
            yield held["fn"].cell_contents, held["recursive"].cell_contents

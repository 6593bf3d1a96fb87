"""Functions that `torch.compile` has compiled run as they were written while a function that calls them is traced.

Otherwise they would be compiled for the fake tensors of the trace, and the compiler would seem to be called by the
function: it saves the state of Python's generator of random numbers, at places where an error ends the process.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch._C._dynamo.eval_frame as frames

from opwright.tracing.torch_hooks.exchanged import Exchanged

_COMPILER = "torch._dynamo.eval_frame"
_ASKED = "_callback_from_stance"  # by a compiled function at each call; None runs it as it was written


@contextmanager
def compiled_as_written() -> Iterator[None]:
    """Run compiled functions so on this thread until the end of the block."""
    compiler = sys.modules.get(_COMPILER)
    if compiler is None or not hasattr(compiler, _ASKED):  # another thread may be importing it: nothing is compiled
        yield
        return
    count: Callable[[int], int] = getattr(frames, "set_fullgraph_compiled_frame_count", lambda count: count)
    before = count(0)  # as inside of a compiled function: `fullgraph` then does not insist on compiling one
    try:
        with _exchanged(compiler).on_this_thread(True):
            yield
    finally:
        count(before)


@functools.cache
def _exchanged(compiler: ModuleType) -> Exchanged[bool]:
    asked = getattr(compiler, _ASKED)

    def callback(compiled: Any) -> Any:
        return asked(compiled) if found.here() is None else None

    found: Exchanged[bool] = Exchanged({(compiler, _ASKED): callback})
    return found

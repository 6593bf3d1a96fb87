"""Functions that `torch.compile` has compiled run as they were written while a function that calls them is traced.

Otherwise they would be compiled for the fake tensors of the trace, and the compiler would seem to be called by the
function: it saves the state of Python's generator of random numbers, at places where an error ends the process.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from opwright.tracing.torch_hooks.exchanged import Exchanged

_COMPILER = "torch._dynamo.eval_frame"
_ASKED = "_callback_from_stance"  # by a compiled function at each call; None runs it as it was written
_COUNTED = "set_fullgraph_compiled_frame_count"  # where `fullgraph` insists on frames that are compiled
_INSIDE = 1  # the count inside of a compiled function, where it does not


@contextmanager
def compiled_as_written() -> Iterator[None]:
    """Run compiled functions so on this thread until the end of the block."""
    compiler = sys.modules.get(_COMPILER)
    if compiler is None or not hasattr(compiler, _ASKED):  # another thread may be importing it: nothing is compiled
        yield
        return
    with _exchanged(compiler).on_this_thread(True):
        yield


@functools.cache
def _exchanged(compiler: ModuleType) -> Exchanged[bool]:
    asked, counted = getattr(compiler, _ASKED), getattr(compiler, _COUNTED, None)

    def callback(compiled: Any) -> Any:
        return asked(compiled) if found.here() is None else None

    def count(frames: int) -> int:
        return counted(frames) if found.here() is None else _INSIDE  # type: ignore[misc]

    members: dict[tuple[Any, str], Any] = {(compiler, _ASKED): callback}
    if counted is not None:
        members[compiler, _COUNTED] = count
    found: Exchanged[bool] = Exchanged(members)
    return found

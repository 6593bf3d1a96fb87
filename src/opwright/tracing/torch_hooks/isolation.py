"""Tracing isolated from the caller's thread, except for modes that a function can query."""

from __future__ import annotations

import contextvars
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch

from opwright.toolchain.process.forks import hold_off_forks
from opwright.toolchain.process.threads import run_in_thread
from opwright.tracing.torch_hooks.compiled import compiled_as_written
from opwright.tracing.torch_hooks.recurrent import dropping_between_layers

Result = TypeVar("Result")

_set_autograd_compiler: Callable[..., Any] = torch._C._dynamo.compiled_autograd.set_autograd_compiler
_COMPILED_AUTOGRAD = "torch._dynamo.compiled_autograd"
_WITH_AUTOCAST = ("cpu", "cuda")  # whose dtypes belong to a thread
_exchange = threading.Lock()
_away: list[Any] = []  # the active autograd compiler, once for each trace that suspends it
_off: list[bool] = []  # whether the garbage collector was on, once for each trace that holds it off


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes of torch that a function can query on its thread.

    Attributes:
        grad: Whether gradients are recorded.
        inference: Whether inference mode is on.
    """

    grad: bool = True
    inference: bool = False

    @staticmethod
    def of_caller() -> Modes:
        """Those of this thread."""
        return Modes(torch.is_grad_enabled(), torch.is_inference_mode_enabled())

    @contextmanager
    def on(self) -> Iterator[None]:
        """Set them until the end of the block."""
        with torch.inference_mode(self.inference), torch.set_grad_enabled(self.grad):
            yield


RECORDING = Modes()


def in_fresh_thread(work: Callable[[], Result], modes: Modes = RECORDING) -> Result:
    """Do work on a new thread, in a copy of the caller's context, and return its result, or raise what it raises.

    If this thread is interrupted, the work is stopped.

    Saved-tensor hooks, profilers and dispatch modes belong to a thread; under the caller's, a trace would show them
    fake tensors. Other threads can fork only after it. The garbage collector waits until then: what it calls, such as
    finalizers, would seem to be called by the function.

    Args:
        work: What to do.
        modes: The modes to set there.
    """
    keep_device_guard()
    results: list[Result] = []
    errors: list[BaseException] = []

    caller = threading.get_ident()
    dtypes = [(kind, torch.get_autocast_dtype(kind)) for kind in _WITH_AUTOCAST]

    def run() -> None:
        try:
            for kind, dtype in dtypes:
                torch.set_autocast_dtype(kind, dtype)
            with hold_off_forks(caller), _without_collections(), _torch_mended(), modes.on():
                results.append(work())
        except BaseException as error:
            errors.append(error)

    with hold_off_forks():
        context = contextvars.copy_context()
        run_in_thread(lambda: context.run(run), "opwright trace")
    if errors:
        raise errors[0]
    return results[0]


@cache
def keep_device_guard() -> None:
    """Have the device guard of fake tensors live as long as the process; call it before any of their modes is entered.

    Where torch is built with CUDA and there is no GPU, the first mode replaces the guard of CUDA for the whole process
    by one that belongs to its thread (`ensureCUDADeviceGuardSet` in c10/core/impl/DeviceGuardImplInterface.cpp; seen
    with PyTorch 2.11). When that thread has ended, the next mode reads what is freed. Here that thread never ends.

    The new guard pretends that there is a GPU. Autograd would start a thread for it with its first backward pass, and
    refuse to run in processes that are forked later. So a pass comes before, which finds none.
    """
    replace: Callable[[], None] | None = getattr(torch._C, "_ensureCUDADeviceGuardSet", None)
    if replace is None or not torch.cuda._is_compiled() or torch.cuda.is_available():
        return
    is_replaced = threading.Event()

    def wait_forever() -> None:
        try:
            with _without_compiled_autograd():
                leaf = torch.zeros((), device="cpu", requires_grad=True)
                torch.autograd.grad(leaf.clone(), leaf)
            replace()
        finally:
            is_replaced.set()
        threading.Event().wait()

    threading.Thread(target=wait_forever, name="opwright device guard", daemon=True).start()
    is_replaced.wait()


@contextmanager
def _without_collections() -> Iterator[None]:
    """Hold off the garbage collector of the process until the last of the blocks that do so has ended."""
    with _exchange:
        _off.append(not _off and gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _exchange:
            if _off.pop():  # true of the first alone, which is popped last
                gc.enable()


@contextmanager
def _torch_mended() -> Iterator[None]:
    with _without_compiled_autograd(), compiled_as_written(), dropping_between_layers():
        yield


@contextmanager
def _without_compiled_autograd() -> Iterator[None]:
    """Differentiate without compiled autograd, which would compile the derivatives of fake tensors.

    It belongs to the process. It is suspended only if it has been imported and is on; if another thread switches it
    meanwhile, that wins.
    """
    if not _is_on():
        yield
        return
    with _exchange:
        _away.append(_set_autograd_compiler(None, False))
    try:
        yield
    finally:
        with _exchange:
            _put_back(_away.pop() if len(_away) > 1 else _away.pop(0))


def _put_back(before: tuple[Any, bool]) -> None:
    now = _set_autograd_compiler(None, False)
    _set_autograd_compiler(*(now if now[0] is not None or not _is_on() else before))


def _is_on() -> bool:
    return bool(getattr(sys.modules.get(_COMPILED_AUTOGRAD), "compiled_autograd_enabled", False))

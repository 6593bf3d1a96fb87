"""Builds on threads of their own, which a call waits for only as long as the user's patience lasts."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from opwright.binding.environment import hooks_of_saved_tensors
from opwright.binding.variants.kinds import Key
from opwright.binding.variants.variant import Plan
from opwright.errors import StillBuilding
from opwright.settings import Settings
from opwright.toolchain.build import build, build_shared
from opwright.toolchain.process.priority import LOW, lower
from opwright.toolchain.process.threads import interrupt

Build = Callable[[], tuple[Path, ...]]

_END_S = 3.0
_running: weakref.WeakSet[Building] = weakref.WeakSet()
_shared: dict[tuple[int, Path, str | None], Building] = {}


class Building:
    """One build, under way or done.

    Args:
        work: Builds libraries.
    """

    def __init__(self, work: Build) -> None:
        self._work = work
        self._process = os.getpid()
        self._is_over = threading.Event()
        self._libraries: tuple[Path, ...] = ()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="opwright build", daemon=True)
        _running.add(self)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether it runs in this process; a forked child lacks the thread."""
        return self._process == os.getpid()

    def wait(self, seconds: float | None) -> bool:
        """Wait for its end, and tell whether that came in time; None waits for good."""
        return self._is_over.wait(seconds)

    def give_way(self) -> None:
        """Go on at low priority, with the compilers that run."""
        with contextlib.suppress(OSError, AttributeError):  # only Linux tells the children of a thread
            task = self._thread.native_id or 0
            os.setpriority(os.PRIO_PROCESS, task, LOW)
            for child in Path(f"/proc/self/task/{task}/children").read_text().split():
                lower(int(child))

    def libraries(self) -> tuple[Path, ...]:
        """What was built.

        Raises:
            Exception: What the build raised.
        """
        if self._error is not None:
            raise self._error
        return self._libraries

    def stop(self) -> None:
        """End it, and its compilers."""
        if self.is_here and not self._is_over.is_set():
            interrupt(self._thread)
            self._is_over.wait(_END_S)

    def _run(self) -> None:
        try:
            self._libraries = self._work()
        except Exception as error:
            self._error = error
        except KeyboardInterrupt:
            self._error = InterruptedError("the build was stopped")
        finally:
            self._is_over.set()


def begin_shared(settings: Settings) -> None:
    """Begin to build what all kernels share, once in a process, so that it is there when the first are derived."""
    where = os.getpid(), settings.cache_directory, settings.compiler
    if where not in _shared:
        _shared[where] = Building(lambda: build_shared(settings))


class Builds:
    """The builds of an operator that calls have begun.

    Attributes:
        took_s: How long the last one took; 0.0 if there was none.
    """

    def __init__(self) -> None:
        self.took_s = 0.0
        self._begun: dict[Key, tuple[Plan, Building | Build]] = {}

    @property
    def are_any(self) -> bool:
        """Whether there are some for which no call waits any more."""
        return bool(self._begun)

    def has(self, kind: Key) -> bool:
        """Whether there is one for some kind of calls."""
        return kind in self._begun and getattr(self._begun[kind][1], "is_here", True)

    def begin(self, kind: Key, plan: Plan, build: Build, *, beside: bool) -> None:
        """Begin to build a plan, beside the call or, without a thread, when it is waited for."""

        def timed() -> tuple[Path, ...]:
            begun = time.monotonic()
            try:
                return build()
            finally:
                self.took_s = time.monotonic() - begun

        self._begun[kind] = plan, Building(timed) if beside else timed

    def pass_by(self, kind: Key, patience_s: float | None) -> None:
        """Look whether there is a build that an earlier call has waited for; without limit, each call waits.

        Raises:
            StillBuilding: If there is.
        """
        building = self._begun[kind][1] if kind in self._begun and patience_s is not None else None
        if isinstance(building, Building) and building.is_here and not building.wait(0.0):
            raise _still_building()

    def end(self, kind: Key, seconds: float | None) -> tuple[Plan, tuple[Path, ...]]:
        """Wait for a build; give what was planned, and the libraries.

        Args:
            kind: What it is for.
            seconds: The longest wait; None waits for good.

        Raises:
            StillBuilding: If it takes longer. It goes on at low priority.
        """
        plan, building = self._begun[kind]
        if isinstance(building, Building) and not building.wait(seconds):
            building.give_way()
            raise _still_building()
        del self._begun[kind]
        return plan, building.libraries() if isinstance(building, Building) else building()


def patience_of(settings: Settings, *, pinned: bool) -> float | None:
    """How many seconds a call waits for its kernels; None for as long as they take.

    So do pinned and strict calls, and those under hooks of saved tensors: a checkpoint refuses a second run of a call
    that saves other tensors than the first.
    """
    return None if pinned or settings.strict or hooks_of_saved_tensors() else settings.patience_s


def _still_building() -> StillBuilding:
    return StillBuilding(
        "its kernels are still being built, after the time that OPWRIGHT_PATIENCE allows",
        hint="go on: they will serve once they are there; OPWRIGHT_PATIENCE=unlimited waits for them",
    )


def build_of(plan: Plan, settings: Settings) -> Build:
    """Build the libraries of a plan."""
    return functools.partial(build, plan.sources, settings)


@atexit.register
def _stop_all() -> None:
    for building in list(_running):
        building.stop()

"""The extension module of `native/`: loaded, being built, or unavailable.

Building it takes about half a minute, once for each version of PyTorch and Python. No call waits for that: the first
operator that is called starts a process that builds it, and until then calls go through Python. If no Python can be
started, as in a frozen application, only OPWRIGHT_TAPE=now builds it.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import subprocess
import threading
import time
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from opwright.package import PACKAGE
from opwright.settings import Settings
from opwright.toolchain.headers.extension import Extension
from opwright.toolchain.modules import module_of_library
from opwright.toolchain.process.forks import Lock
from opwright.toolchain.process.own_python import can_start_python, python_command
from opwright.toolchain.process.priority import lower_own
from opwright.toolchain.process.starting import start
from opwright.tracing.recording.faults import summary

_DIRECTORY = PACKAGE / "native"
_NAME = "tape"
_POLL_S = 0.25
_MOST_INTERRUPTS, _PATIENCE_S = 5, 3.0  # one that comes while it starts may be lost
_log = logging.getLogger("opwright")


class Equipped(Protocol):
    """A user of the module."""

    def equip(self, native: Any) -> None:
        """Start using it; called once, on any thread."""


class Native:
    """Passes the module of this process to its users.

    Args:
        directory: Where its sources are: `tape.cpp` and headers.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = Lock()
        self._module: ModuleType | None = None
        self._asked_in: int | None = None  # the process: a forked child lacks the waiting thread
        self._building: threading.Thread | None = None
        self._loading = Lock()
        self._is_leaving = False
        self._builder: subprocess.Popen[bytes] | None = None
        self._waiting: weakref.WeakSet[Equipped] = weakref.WeakSet()

    def equip(self, user: Equipped, settings: Settings) -> None:
        """Pass the module to a user, now or when it is built."""
        if settings.tape == "off":
            return
        with self._lock:
            self._waiting.add(user)
            if self._module is None and self._asked_in != os.getpid():
                self._asked_in = os.getpid()
                self._ask(settings)
        self._equip_all()

    @property
    def is_coming(self) -> bool:
        """Whether it is being built for this process."""
        return self._module is None and self._building is not None and self._building.is_alive()

    def wait(self, patience_s: float) -> None:
        """Wait for a running build."""
        if self._building is not None:
            self._building.join(patience_s)

    def abandon(self) -> None:
        """End a build that this process has started, and its compiler; a later process starts anew."""
        builder = self._builder
        for number in (*[signal.SIGINT] * _MOST_INTERRUPTS, signal.SIGKILL):  # interrupted, it ends its compiler too
            if builder is None or builder.poll() is not None:
                return
            builder.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                builder.wait(_PATIENCE_S)

    def _ask(self, settings: Settings) -> None:
        try:
            extension = Extension(self._directory, _NAME, settings)
            if extension.settings.tape == "now":
                extension.build()
            path = extension.find()
            if path is not None:
                self._module = module_of_library("opwright_tape", path)
            elif not extension.was_refused() and can_start_python():
                self._building = threading.Thread(target=self._await, args=(extension,), daemon=True)
                atexit.register(self._leave)
                self._building.start()
        except Exception as error:
            _stay_in_python(error)

    def _await(self, extension: Extension) -> None:
        """Wait until it is built, by our process or by another, and pass it to all waiting users."""
        try:
            while extension.is_being_built():
                time.sleep(_POLL_S)
            if extension.find() is None:
                self._builder = _build_elsewhere(self._directory, extension.settings)
                self._builder.wait()
            path = extension.find()
            with self._loading:
                if path is not None and not self._is_leaving:
                    module = module_of_library("opwright_tape", path)
                    with self._lock:
                        self._module = module
                    self._equip_all()
        except Exception as error:
            _stay_in_python(error)

    def _leave(self) -> None:
        """At the end of the process: the thread that waits must not be in the middle of C++ (process/threads.py)."""
        with self._loading:
            self._is_leaving = True

    def _equip_all(self) -> None:
        """Pass it to all waiting users, if it is built."""
        with self._lock:
            users = [] if self._module is None else list(self._waiting)
            for user in users:
                self._waiting.discard(user)
        for user in users:
            _equip(user, self._module)


def _equip(user: Equipped, module: ModuleType | None) -> None:
    try:
        user.equip(module)
    except Exception as error:
        _stay_in_python(error)


def _stay_in_python(error: Exception) -> None:
    """Without the module, calls go through Python, which is slower and also right."""
    _log.info("the hot path in C++ is unavailable: %s", summary(error))


native = Native(_DIRECTORY)


def hot_path(settings: Settings) -> Extension:
    """Return the extension that operators use, built or not."""
    return Extension(_DIRECTORY, _NAME, settings)


def _build_elsewhere(directory: Path, settings: Settings) -> subprocess.Popen[bytes]:
    """Start a silent process of low priority that builds the module."""
    given = (str(directory), str(settings.cache_directory), settings.compiler)
    return start(
        python_command(f"from opwright.binding.native import build; build(*{given!r})"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def build(directory: str, cache_directory: str, compiler: str | None) -> None:
    """Build the module, at low priority."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    lower_own()
    Extension(Path(directory), _NAME, Settings(Path(cache_directory), compiler)).build()

"""Fork processes from a Python that has already imported PyTorch and opwright, which saves two seconds of imports.

    ran = run("-c", "import torch, opwright; ...")            as subprocess.run([sys.executable, "-c", ...])
    started = start("program.py", "argument", env=...)        as subprocess.Popen
    run("-c", "import torch; ...", having="torch")            for a program that must not find opwright imported

Three servers fork for each program. The first has imported PyTorch; its fork has imported opwright, too, and the fork
of that also what derivations need. None has derived anything. The program gets its own arguments, environment, folder
and output. Tests of the imports themselves need a new Python.

All forks of a process that called `begin` share its servers.
"""

from __future__ import annotations

import array
import atexit
import functools
import importlib
import json
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NoReturn, get_args

_LENGTH_BYTES = 8
Imported = Literal["torch", "opwright", "derivations"]
_IMPORTED: tuple[Imported, ...] = get_args(Imported)


class Started:
    """A running program."""

    def __init__(self, command: tuple[str, ...], pid: int, output: int, errors: int, status: int) -> None:
        self.command, self.pid = command, pid
        self.returncode: int | None = None
        self._pipes = {output: bytearray(), errors: bytearray(), status: bytearray()}
        self._output, self._errors, self._status = output, errors, status

    def communicate(self, timeout: float = 300) -> tuple[str, str]:
        """Wait for its end and return its output; kill it if it takes too long."""
        deadline, still_open = time.monotonic() + timeout, set(self._pipes) if self.returncode is None else set()
        while still_open:
            ready, _, _ = select.select(list(still_open), [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                os.kill(self.pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(self.command, timeout)
            for pipe in ready:
                if read := os.read(pipe, 1 << 16):
                    self._pipes[pipe] += read
                else:
                    still_open.remove(pipe)
                    os.close(pipe)
        self.returncode = int(self._pipes[self._status])
        return self._pipes[self._output].decode(), self._pipes[self._errors].decode()


def start(
    *command: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    having: Imported = "derivations",
) -> Started:
    """Start a program: `-c TEXT`, `-m MODULE` or a file, and its arguments; having: what is imported before."""
    environment = dict(os.environ if env is None else env)
    return begin().start(having, command, environment, str(cwd or os.getcwd()))


def run(
    *command: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    timeout: float = 300,
    having: Imported = "derivations",
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    started = start(*command, env=env, cwd=cwd, having=having)
    output, errors = started.communicate(timeout)
    assert started.returncode is not None
    return subprocess.CompletedProcess(command, started.returncode, output, errors)


class _Servers:
    """The three processes that fork."""

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in _IMPORTED]
        self._ours = {imported: ours for imported, (ours, _) in zip(_IMPORTED, pairs, strict=True)}
        theirs = [theirs.fileno() for _, theirs in pairs]
        begin = f"import sys; sys.path[:] = {sys.path!r}; from tests.suite.warm_python import serve_all; "
        self._process = subprocess.Popen([sys.executable, "-c", f"{begin}serve_all(*{theirs})"], pass_fds=theirs)
        for _, end in pairs:
            end.close()
        self._asking = multiprocessing.Lock()
        self._began_them = os.getpid()
        atexit.register(self._end)

    def _end(self) -> None:
        if os.getpid() != self._began_them:
            return
        for ours in self._ours.values():
            ours.shutdown(socket.SHUT_RDWR)  # forks may have it open, too
            ours.close()
        self._process.wait(timeout=60)

    def start(self, having: Imported, command: tuple[str, ...], environment: dict[str, str], folder: str) -> Started:
        server, pipes = self._ours[having], [os.pipe() for _ in range(3)]
        with self._asking:
            _send(server, {"command": command, "environment": environment, "folder": folder}, [w for _, w in pipes])
            pid = int.from_bytes(server.recv(_LENGTH_BYTES, socket.MSG_WAITALL), "big")
        for _, written in pipes:
            os.close(written)
        assert pid, "the server of programs has ended"
        return Started(command, pid, *(read for read, _ in pipes))


@functools.cache
def begin() -> _Servers:
    """Start the servers, unless this process or one that it is a fork of has started them."""
    return _Servers()


def _send(to: socket.socket, message: dict[str, Any], files: list[int]) -> None:
    text = json.dumps(message).encode()
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
    to.sendmsg([len(text).to_bytes(_LENGTH_BYTES, "big")], ancillary)
    to.sendall(text)


def _receive(given: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    length, files, _, _ = socket.recv_fds(given, _LENGTH_BYTES, 3)
    if len(length) < _LENGTH_BYTES:
        return None
    text = given.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
    return json.loads(text), files


def serve_all(*descriptors: int) -> None:
    """Import and serve; a fork imports more, and serves those who want that. They end with the tests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for imported, descriptor in zip(_IMPORTED, descriptors, strict=True):
        _import(imported)
        following = descriptors[descriptors.index(descriptor) + 1 :]
        if not following or os.fork():
            for each in following:
                os.close(each)
            _serve(descriptor)
            return
        os.close(descriptor)


def _import(what: Imported) -> None:
    if what == "torch":
        importlib.import_module("torch")
    elif what == "opwright":
        _ = importlib.import_module("opwright").operator  # which imports what all operators need
    else:
        importlib.import_module("opwright.operators.stages")
        importlib.import_module("torch.distributed.tensor")  # which `torch.testing` wants


def _serve(descriptor: int) -> None:
    """Fork a process for each requested program and report its exit code, until the client closes the connection."""
    given = socket.socket(fileno=descriptor)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    statuses: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([given, woken], [], [])
        if woken in ready:
            os.read(woken, 1 << 10)
            for pid in list(statuses):
                if (ended := os.waitpid(pid, os.WNOHANG))[0]:
                    os.write(statuses[pid], str(os.waitstatus_to_exitcode(ended[1])).encode())
                    os.close(statuses.pop(pid))
        if given in ready:
            if (asked := _receive(given)) is None:
                return
            message, (output, errors, status) = asked
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for open_here in (given.fileno(), woken, wake, status, *statuses.values()):
                    os.close(open_here)
                _become(message["command"], message["environment"], message["folder"], output, errors)
            os.close(output)
            os.close(errors)
            statuses[pid] = status
            given.sendall(pid.to_bytes(_LENGTH_BYTES, "big"))


def _become(command: list[str], environment: dict[str, str], folder: str, output: int, errors: int) -> NoReturn:
    """Run a program in this process as `python COMMAND` would, and exit."""
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.close(output)
    os.close(errors)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs the tests in the background ignores it
    status = 1
    try:
        _run_as_main(command)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if status and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        import threading

        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run_as_main(command: list[str]) -> None:
    import runpy

    flag, rest = (command[0], command[1:]) if command[0] in ("-c", "-m") else ("", command)
    if flag == "-m":
        sys.path.insert(0, os.getcwd())
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return
    main = sys.modules["__main__"] = ModuleType("__main__")
    text = rest[0] if flag else Path(rest[0]).read_text(encoding="utf-8")
    sys.path.insert(0, "" if flag else str(Path(rest[0]).resolve().parent))
    sys.argv = ["-c", *rest[1:]] if flag else list(rest)
    if not flag:
        main.__file__ = rest[0]
    exec(compile(text, "<string>" if flag else rest[0], "exec"), vars(main))

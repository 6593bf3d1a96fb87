"""Children: run the parts of a long piece of work in forked processes, so that compilers run while others derive.

    results = in_children(lambda number, tell: work_on(number), count, tell)

Fork before work begins: threads of the parent, such as those of OpenMP, do not exist in a child. What children write
to stderr is shown once, however many of them write it; to stdout only the first may write.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NoReturn, TypeVar

from opwright import errors
from opwright.errors import OpwrightError, Place
from opwright.toolchain.process.forks import hold_off_forks

Result = TypeVar("Result")
Tell = Callable[[str, int, int], None]

_LENGTH = struct.Struct("!Q")
_PATIENCE_S = 5.0  # an interrupted child ends its compilers
_MOST_INTERRUPTS = 3
_INTERRUPTED = 130


class ChildFailed(RuntimeError):
    """A child raised what is no refusal, or ended without a result, as one does that is killed for want of memory."""


@dataclass(slots=True)
class _Child:
    pid: int
    pipe: int
    said: IO[bytes]
    received: bytearray = field(default_factory=bytearray)
    progress: tuple[int, int] = (0, 0)
    outcome: dict[str, Any] | None = None
    is_over: bool = False

    def messages(self) -> list[Any]:
        """What has come whole."""
        found = []
        while len(self.received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self.received)
            if len(self.received) < _LENGTH.size + length:
                break
            found.append(json.loads(self.received[_LENGTH.size : _LENGTH.size + length]))
            del self.received[: _LENGTH.size + length]
        return found

    def await_end(self, until: float) -> bool:
        """Whether it has ended by then."""
        while not self.is_over:
            self.is_over = os.waitpid(self.pid, os.WNOHANG)[0] != 0
            if time.monotonic() > until:
                break
            time.sleep(0.0 if self.is_over else 0.01)
        return self.is_over


def in_children(
    work: Callable[[int, Tell], Result], count: int, tell: Tell, at_the_end: Callable[[], object] = lambda: None
) -> list[Result]:
    """Run `work(number, tell)` for each number below `count`, each in a child, and return their results in order.

    No child outlives this call: when it is interrupted, or one of them fails, the others are interrupted, and killed if
    that does not end them.

    Args:
        work: What a child does; its result must be fit for JSON.
        count: How many children.
        tell: Told what children do, with the steps of all of them that are done, and their number.
        at_the_end: What a child that is interrupted does before it ends.

    Raises:
        OpwrightError: A child raised it.
        ChildFailed: A child raised something else, or was killed.
    """
    children: list[_Child] = []
    try:
        with hold_off_forks():
            for number in range(count):
                children.append(_begin(work, number, children, at_the_end))
        _listen(children, tell)
        for child in children:
            child.await_end(time.monotonic() + _PATIENCE_S)
    finally:
        _end(children)
        _show_errors(children)
    return _results([child.outcome for child in children])


def _results(outcomes: Sequence[dict[str, Any] | None]) -> list[Any]:
    """What was found; else what was raised first, before that others were interrupted for it."""
    for outcome in outcomes:
        match outcome:
            case {"refusal": [str(name), str(fact), place, hint]}:
                kind = getattr(errors, name, OpwrightError)
                raise kind(fact, place=Place(*place) if place else None, hint=hint)
            case {"fault": str(trace)}:
                raise ChildFailed(f"a process that worked on a part of it failed:\n{trace}")
    if None in outcomes:
        raise ChildFailed("a process that worked on a part of it was killed")
    return [outcome["result"] for outcome in outcomes if outcome is not None]


def _begin(
    work: Callable[[int, Tell], Any], number: int, earlier: Sequence[_Child], at_the_end: Callable[[], object]
) -> _Child:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    said = tempfile.TemporaryFile()  # noqa: SIM115  (closed by _show_errors)
    read, written = os.pipe()
    pid = os.fork()
    if pid == 0:
        _live(work, number, written, said, (read, *(child.pipe for child in earlier)), at_the_end)
    os.close(written)
    return _Child(pid, read, said)


def _live(
    work: Callable[[int, Tell], Any],
    number: int,
    pipe: int,
    said: IO[bytes],
    foreign: Sequence[int],
    at_the_end: Callable[[], object],
) -> NoReturn:
    """What a child does from its beginning to its end."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
        for descriptor in foreign:
            os.close(descriptor)
        os.dup2(said.fileno(), 2)
        if number:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        outcome = _outcome(work, number, lambda *told: _send(pipe, ("progress", told)))
        _send(pipe, ("outcome", outcome))
        status = 0
    except KeyboardInterrupt:
        status = _INTERRUPTED
        at_the_end()
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        os._exit(status)  # whatever happens: what called `in_children` goes on in the parent alone


def _outcome(work: Callable[[int, Tell], Any], number: int, tell: Tell) -> dict[str, Any]:
    try:
        return {"result": work(number, tell)}
    except OpwrightError as refusal:
        place = refusal.place and [refusal.place.file, refusal.place.line]
        return {"refusal": [type(refusal).__name__, refusal.fact, place, refusal.hint]}
    except Exception as error:
        return {"fault": "".join(traceback.format_exception(error))}


def _send(pipe: int, message: Any) -> None:
    data = json.dumps(message).encode()
    rest = memoryview(_LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def _listen(children: Sequence[_Child], tell: Tell) -> None:
    """Take in what children say, until all have said their last, or one has failed."""
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child.pipe, selectors.EVENT_READ, child)
        while selector.get_map():
            for key, _ in selector.select():
                child = key.data
                read = os.read(child.pipe, 1 << 16)
                child.received += read
                for kind, value in child.messages():
                    if kind == "outcome":
                        child.outcome = value
                        if "result" not in value:
                            return
                    else:
                        what, *child.progress = value
                        tell(what, *map(sum, zip(*(each.progress for each in children), strict=True)))
                if not read:
                    selector.unregister(child.pipe)
                    if child.outcome is None:
                        return


def _end(children: Sequence[_Child]) -> None:
    """End those that still run."""
    for number in (*[signal.SIGINT] * _MOST_INTERRUPTS, signal.SIGKILL):
        alive = [child for child in children if not child.await_end(0)]
        for child in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, number)
        until = time.monotonic() + _PATIENCE_S
        for child in alive:
            child.await_end(until)
    for child in children:
        os.close(child.pipe)


def _show_errors(children: Sequence[_Child]) -> None:
    shown: set[str] = set()
    for child in children:
        with child.said as said:
            said.seek(0)
            for line in said.read().decode(errors="replace").splitlines(keepends=True):
                if line not in shown:
                    shown.add(line)
                    sys.stderr.write(line)

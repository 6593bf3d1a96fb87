"""States of the world outside: what a function reads there, and the variants that were traced while it was so."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.errors import NoKernel, OpwrightError
from opwright.toolchain.process.forks import Lock
from opwright.tracing.outside.guard import ABSENT, Guard, facts_of, first_failing
from opwright.tracing.outside.hazards import ImportedMeanwhile, OutsideUnknown, refusing
from opwright.tracing.outside.plain import are_same
from opwright.tracing.outside.reach import Reads, reads_of

MOST_STATES = 8


class OutsideMoved(NoKernel):
    """What a function reads outside has changed while it was traced: there is a trace for neither."""


class OutsideChanged(OpwrightError):
    """What a function read outside is another value when a gradient of the call is differentiated."""


class State:
    """What a function read outside at one moment.

    Args:
        function: The function as written.
        reads: What it read.

    Attributes:
        identity: A digest of all of it, the same in any process; None if there is something that no text tells.
        guards: The same comparison in C++, once there is the extension module; None before.
    """

    def __init__(self, function: Callable[..., Any], reads: Reads) -> None:
        self._function = function
        self._reads = reads
        self._spec = reads.guard.spec
        self.guards: Any = None
        self.identity = _digest(reads.guard)

    def holds(self) -> bool:
        """Whether everything is as it was."""
        if self.guards is not None:
            return bool(self.guards.hold())
        return self.failing() is None

    def failing(self) -> Guard | None:
        """A value that is another one now."""
        return first_failing(self._reads.guard, self._function)

    def ensure_same(self) -> None:
        """Look again before what was computed in this state is differentiated.

        Gradient mode is as it was: it was on, for somebody recorded.

        Raises:
            OutsideChanged: If something is another value by now.
        """
        with torch.enable_grad():
            if self.holds():
                return
            failing = self.failing()
        raise OutsideChanged(
            f"{failing.label if failing else 'a value outside of the arguments'} has changed since the call that is "
            "differentiated, which its derivative would have to be computed with",
            place=failing.place if failing else None,
            hint="change it after the gradients of its calls are computed, or make it a parameter",
        )

    def equip(self, native: Any) -> None:
        """Compare in C++ from now on."""
        if self.guards is None:
            self.guards = native.Guards(self._spec, self._function, ABSENT, are_same)

    def tracing(self, reference: Callable[..., Any], derive: Callable[[Callable[..., Any]], Any]) -> Any:
        """Derive something from the function, or from one that calls it, in this state.

        Raises:
            OutsideMoved: If it is another state when it is done; what was derived belongs to none.
            OutsideUnknown: If something was read that cannot be compared.
        """
        if not self.holds():
            raise OutsideMoved(
                "what it reads outside of its arguments has changed", hint="pass what changes as an argument"
            )
        try:
            derived = derive(refusing(reference, self._reads.hazards))
        except ImportedMeanwhile as imported:
            raise OutsideMoved(imported.fact, hint=imported.hint) from None
        if not self.holds():
            failing = self.failing()
            raise OutsideMoved(
                f"it changes {failing.label if failing else 'what it reads'}",
                hint="pass that as an argument, and return its new value",
            )
        return derived


class Outside:
    """The states of what one function reads outside; its transforms share them.

    Args:
        function: The function as written.
        frozen: Names whose values are taken for constants.
    """

    def __init__(self, function: Callable[..., Any], frozen: Sequence[str] = ()) -> None:
        self._function = function
        self._frozen = frozenset(frozen)
        self._lock = Lock()
        self._states: tuple[State, ...] = ()
        self._refusal: OutsideUnknown | None = None
        self._native: Any = None

    def now(self) -> State:
        """The state at this moment.

        Raises:
            OutsideUnknown: If there were too many already.
        """
        for state in self._states:
            if state.holds():
                return state
        with self._lock:
            return self._new()

    def _new(self) -> State:
        if self._refusal is not None:
            raise self._refusal.again()
        if len(self._states) >= MOST_STATES:
            self._refusal = _too_many(self._states[0].failing())
            raise self._refusal.again()
        state = State(self._function, reads_of(self._function, self._frozen))
        if self._native is not None:
            state.equip(self._native)
        self._states = (state, *self._states)
        return state

    def forget(self, state: State) -> None:
        """Let a state go that nothing was derived in."""
        with self._lock:
            self._states = tuple(other for other in self._states if other is not state)

    def equip(self, native: Any) -> None:
        """Compare in C++ from now on."""
        with self._lock:
            self._native = native
            for state in self._states:
                state.equip(native)


def _too_many(failing: Guard | None) -> OutsideUnknown:
    return OutsideUnknown(
        f"{failing.label if failing else 'something outside of its arguments'} has had {MOST_STATES} values, "
        "each with kernels of its own",
        place=failing.place if failing else None,
        hint="make it a parameter: a number that changes from call to call costs one extra build",
    )


def _digest(guard: Guard) -> str | None:
    digest = hashlib.sha256()
    for fact in facts_of(guard):
        if fact is None:
            return None
        digest.update(f"{len(fact)}:{fact}".encode())
    return digest.hexdigest()

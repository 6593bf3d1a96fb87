"""States: the values that a function reads from outside of its arguments, and the variants traced with them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.errors import NoKernel, OpwrightError
from opwright.toolchain.process.forks import Lock
from opwright.tracing.outside.guard import (
    Check,
    Fetch,
    Guard,
    are_distinct,
    facts_of,
    first_failing,
    values_in_slots,
)
from opwright.tracing.outside.hazards import ImportedMeanwhile, OutsideUnknown, refusing, telling
from opwright.tracing.outside.plain import are_same
from opwright.tracing.outside.ran import (
    Codes,
    RanMore,
    keeping_to,
    left_out,
    number_of_a_trace,
    running_no_other,
)
from opwright.tracing.outside.reach import Reads, reads_of
from opwright.tracing.outside.unasked import ABSENT

MOST_STATES = 8  # under one default dtype
_default_dtype = torch.get_default_dtype


class OutsideMoved(NoKernel):
    """What a function reads outside changed during its trace, which is valid for neither value."""


class OutsideChanged(OpwrightError):
    """What a function read outside has changed when a gradient of the call is differentiated."""


class State:
    """What a function read outside at one moment, and torch's default dtype, which every function may depend on.

    Args:
        function: The function as written.
        reads: What it read.

    Attributes:
        reads: The same.
        default_dtype: That of torch.
        identity: A digest of all of it, the same in any process; None if something in it has no text, or once a trace
            has gone another way than that of another process may.
        guards: The same comparison in C++, once the extension module is loaded; None before.
    """

    def __init__(self, function: Callable[..., Any], reads: Reads) -> None:
        self._function = function
        self.reads = reads
        self._spec = reads.guard.spec
        self.guards: Any = None
        self.default_dtype = _default_dtype()
        self._default = _guard_of(self.default_dtype)
        self.identity = _digest(reads, self._default)

    def holds(self) -> bool:
        """Whether nothing has changed."""
        if self.guards is not None:
            return bool(self.guards.hold())
        return self.failing() is None

    def failing(self) -> Guard | None:
        """The guard of a value that has changed."""
        return self._compared()[0]

    def found(self) -> list[Any] | None:
        """The values in the slots of a module; None if something has changed."""
        if self.guards is not None:
            found: list[Any] | None = self.guards.found()
            return found
        failing, slots = self._compared()
        return None if failing else [slots[slot] for slot in range(len(slots))]

    def held(self) -> dict[int, Any]:
        """The values in the slots of a module, without comparing anything."""
        slots: dict[int, Any] = {}
        values_in_slots(self.reads.guard, self._function, slots)
        return slots

    def _compared(self) -> tuple[Guard | None, dict[int, Any]]:
        slots: dict[int, Any] = {}
        failing = first_failing(self._default, _default_dtype)
        failing = failing or first_failing(self.reads.guard, self._function, slots)
        return failing or (None if are_distinct(slots) else self.reads.guard), slots

    def ensure_same(self) -> None:
        """Compare again before results of this state are differentiated.

        Gradient mode counts as unchanged: it was on, because the call was recorded.

        Raises:
            OutsideChanged: If something has changed.
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
            slots = len(self.reads.layers.slots) if self.reads.layers else 0
            self.guards = native.Guards(self._spec, self._function, ABSENT, are_same, slots, self.default_dtype)

    def tracing(self, reference: Callable[..., Any], derive: Callable[[Callable[..., Any]], Any]) -> Any:
        """Derive something from the function, or from one that calls it, in this state.

        Raises:
            OutsideMoved: If the state has changed when it is done; the result is valid for neither.
            OutsideUnknown: If something was read that cannot be compared.
            RanMore: If the walk kept to some functions, and others ran.
        """
        if self.reads.ran is not None and self.reads.searched is not None:
            number = number_of_a_trace()
            try:
                return self._tracing(keeping_to(self.reads.ran, self.reads.searched, number, reference), derive)
            finally:
                if more := left_out(number):  # whatever became of the trace
                    raise RanMore(self.reads.ran | more)
        try:
            return self._tracing(reference, derive)
        except (OutsideMoved, OutsideUnknown):
            if self.reads.layers is None or not self.reads.layers.of_module:
                raise
        raise RanMore(frozenset())  # what the module can reach cannot be compared; perhaps what it runs can

    def _go_unrecorded(self) -> None:
        self.identity = None

    def _tracing(self, reference: Callable[..., Any], derive: Callable[[Callable[..., Any]], Any]) -> Any:
        if not self.holds():
            raise OutsideMoved(
                "what it reads outside of its arguments has changed", hint="pass what changes as an argument"
            )
        try:
            watched = telling(reference, self.reads.unordered, self._go_unrecorded)
            if self.reads.ran is None and self.reads.noted is not None:
                watched = running_no_other(self.reads.noted, watched)
            derived = derive(refusing(watched, self.reads.hazards))
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
        frozen: Names whose values are treated as constants.
        read: `(function, searched) -> what it reads`; needed for what is no function.
        searched: The functions that are searched for what they read; None for all that can be reached.
        may_search: Whether only some may be searched, if there are too many states otherwise.

    Attributes:
        states: Those that it has met, the latest first.
        searched: The same, as they are now.
        may_capture: Whether tensors that the function uses may become arguments of another operator.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        frozen: Sequence[str] = (),
        read: Callable[[Any, Codes | None], Reads] | None = None,
        searched: Codes | None = None,
        *,
        may_search: bool = False,
    ) -> None:
        self.searched = searched
        self.may_capture = False
        self._function = function
        self._may_search = may_search
        self._read = read or (lambda function, _: reads_of(function, frozenset(frozen)))
        self._lock = Lock()
        self.states: tuple[State, ...] = ()
        self._refusal: OutsideUnknown | None = None
        self._native: Any = None

    def now(self) -> State:
        """The current state.

        Raises:
            OutsideUnknown: If there were too many already.
        """
        for state in self.states:
            if state.holds():
                return state
        with self._lock:
            return self._new()

    def _new(self) -> State:
        if self._refusal is not None:
            raise self._refusal.again()
        if len(self._alike()) >= MOST_STATES and self.searched is None and self._may_search:
            self.searched, self.states = frozenset(), ()
        if len(alike := self._alike()) >= MOST_STATES:
            self._refusal = _too_many(alike[0].failing())
            raise self._refusal.again()
        state = State(self._function, self._read(self._function, self.searched))
        if self._native is not None:
            state.equip(self._native)
        self.states = (state, *self.states)
        return state

    def _alike(self) -> list[State]:
        """The states under the default dtype that torch has now."""
        return [state for state in self.states if state.default_dtype is _default_dtype()]

    def is_beyond(self) -> bool:
        """Whether there were too many states, and none of them is the current one."""
        return self._refusal is not None and not any(state.holds() for state in self.states)

    def forget(self, state: State) -> None:
        """Remove a state without variants."""
        with self._lock:
            self.states = tuple(other for other in self.states if other is not state)

    def search(self, codes: Codes) -> None:
        """Search some functions only from now on, and forget the current state."""
        with self._lock:
            self.searched, self._refusal = codes, None
            self.states = tuple(state for state in self.states if not state.holds())

    def equip(self, native: Any) -> None:
        """Compare in C++ from now on."""
        with self._lock:
            self._native = native
            for state in self.states:
                state.equip(native)


class OneState(Outside):
    """The one state that an operator is for; another one is served by another operator.

    Args:
        function: The function as written.
        state: The state.
    """

    def __init__(self, function: Callable[..., Any], state: State) -> None:
        super().__init__(function)
        self.states = (state,)

    def now(self) -> State:
        """The state, which was the current one a moment ago; traces look again."""
        return self.states[0]

    def forget(self, state: State) -> None:
        """Keep it."""


def _too_many(failing: Guard | None) -> OutsideUnknown:
    return OutsideUnknown(
        f"{failing.label if failing else 'something outside of its arguments'} has had {MOST_STATES} values, "
        "each with kernels of its own",
        place=failing.place if failing else None,
        hint="make it a parameter: a number that changes from call to call costs one extra build",
    )


def _guard_of(default: torch.dtype) -> Guard:
    return Guard(Fetch.CALL, None, Check.IDENTITY, default, (), "torch's default dtype", None, str(default))


def _digest(reads: Reads, default: Guard) -> str | None:
    digest = hashlib.sha256("\n".join(sorted(reads.ran or ())).encode())
    for fact in (*facts_of(default), *facts_of(reads.guard)):
        if fact is None:
            return None
        digest.update(f"{len(fact)}:{fact}".encode())
    return digest.hexdigest()

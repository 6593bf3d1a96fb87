"""The variants of one operator: found in memory, then on disk, then derived; refusals are remembered too."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from opwright.binding.native import native
from opwright.binding.rungs import RungName
from opwright.binding.tape import Entry, Flat, Tape, Varying
from opwright.binding.variants.building import Builds, begin_shared, build_of, patience_of
from opwright.binding.variants.kinds import Key, are_constants, call_of, kind_of
from opwright.binding.variants.known_passes import KnownPasses
from opwright.binding.variants.records import record_key
from opwright.binding.variants.refusals import find_refusal, record_refusal
from opwright.binding.variants.states import OutsideMoved, State
from opwright.binding.variants.variant import Differentiate, Plan, Variant, load_variant
from opwright.errors import LeftToFunction, NoKernel, NumberNeeded, OpwrightError, StillBuilding, TracingFailed
from opwright.settings import Settings
from opwright.toolchain.process.forks import Lock
from opwright.toolchain.storage.records import RecordStore
from opwright.tracing.interface.memory import given_twice
from opwright.tracing.interface.orders import orders_of
from opwright.tracing.interface.signature import Signature
from opwright.tracing.outside.ran import RanMore
from opwright.tracing.recording.faults import refusing_faults, summary

_MOST_VARIANTS = 32
_log = logging.getLogger("opwright")


def _one_operation() -> LeftToFunction:
    return LeftToFunction(
        "the function is one operation of PyTorch, and no kernel is derived from it", hint='pin it with .on("cpp")'
    )


class Changing(Protocol):
    """Tells which numbers change from call to call.

    Attributes:
        version: Another one after every change of that.
    """

    version: int

    def varying(self) -> Sequence[Varying]:
        """Those that kernels are given at run time."""


class Variants:
    """All variants of an operator, the latest used first for each way of calling it.

    A way of calling is which arguments require gradients, and the values of those that are not tensors.

    Args:
        identity: The key under which they are recorded; returns None if they are not.
        signature: The operator's parameters.
        differentiate: Differentiates their results.
        name: The name of the operator.
        state: The state in which they were traced.
        numbers: Tells which numbers kernels are given.

    Attributes:
        state: The same.
        plain: Whether every variant returns the results of its kernel unchanged.
        by_call: The variants for each way of calling.
        has_fed: Whether some compute outputs from others, so that gradients flow between them.
        rung: The rung of all of them; None if they differ.
        left: The calls that are left to the function itself, by `call_of`, as long as C++ does not know them.
        is_one_operation: Whether they are because kernels would gain nothing over it.
        play: Runs calls in C++, and returns LEFT or NotImplemented; None as long as it knows none.
        play_pinned: The same, and leaves none to the function.
        flat: What it knows of them.
    """

    def __init__(
        self,
        identity: Callable[[], str | None],
        signature: Signature,
        differentiate: Differentiate,
        name: str,
        state: State,
        numbers: Changing,
    ) -> None:
        self.state = state
        self._identity = identity
        self._signature = signature
        self._load = functools.partial(load_variant, differentiate=differentiate)
        self._passes = KnownPasses(self._wind_if_free)
        arity = len(signature.parameters)
        self._make_tape = functools.partial(Tape, name=name, arity=arity, state=state, passes=self._passes)
        self._numbers = numbers
        self._wound_for = numbers.version
        self.flat: Flat | None = None
        self._entries: tuple[Entry, ...] = ()
        self._native: Any = None
        self._left_calls: Any = None
        self._leaves_some = False
        self._lock = Lock()
        self._refusals: dict[Key, OpwrightError] = {}
        self._builds = Builds()
        self._left_kinds: set[Key] = set()
        self.left: set[Key] = set()
        self.is_one_operation = False
        self.plain = True
        self.has_fed = False
        self.rung: RungName | None = None
        self.by_call: dict[Key, list[Variant]] = {}
        self.play: Callable[..., Any] | None = None
        self.play_pinned: Callable[..., Any] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether kernels are being built that no call waits for."""
        return self._builds.are_any

    @property
    def awaits_native(self) -> bool:
        """Whether gradients flow between outputs, and the extension module, which sees it, is still being built."""
        return self.has_fed and self._native is None and native.is_coming

    @property
    def is_at_hand(self) -> bool:
        """Whether Python can run what is there without looking further, and return what kernels do."""
        return self.plain and not self.awaits_native

    @property
    def built_in_s(self) -> float:
        """How long compilers took for the last variant that was derived in this process."""
        return self._builds.took_s

    @property
    def tape(self) -> Tape | None:
        """The tape that runs calls in C++; None as long as there is none."""
        return self.flat.tape if self.flat else None

    def equip(self, native: Any) -> None:
        """Run calls in C++ from now on, if the extension module can."""
        with self._lock:
            self._native = native
            self._left_calls = native.LeftCalls()
            self.state.equip(native)
            self._wind()

    def keep_up(self) -> None:
        """Look which numbers change by now."""
        if self._wound_for != self._numbers.version:
            with self._lock:
                self._wind()

    def _wind_if_free(self) -> None:
        with self._lock.if_free() as is_mine:
            if is_mine:
                self._wind()

    def _wind(self) -> None:
        flat: Flat | None = None
        entries: tuple[Entry, ...] = ()
        self._wound_for, former = self._numbers.version, self.tape
        try:
            if self._native:
                tape = self._make_tape(self._native, self.by_call, varying=self._numbers.varying())
                if tape.runs is not None or self._leaves_some:
                    flat = Flat(self._native, tape if tape.runs else None, self._left_calls, self.state)
                    make = functools.partial(Entry, self._signature, [(None, flat)])
                    entries = make(), make(is_pinned=True)
        except Exception as error:  # calls go through Python, which is also right
            _log.warning("calls take the path in Python: %s", summary(error))
            flat, entries = None, ()
        self.flat, self._entries = flat, entries
        self.play, self.play_pinned = (entry.play for entry in entries) if entries else (None, None)
        if former is not None:  # entries of structures, and of modules, look for the new one
            former.runs.replace()

    def leave(self, arguments: Sequence[Any], settings: Settings, *, is_one_operation: bool = False) -> None:
        """Leave calls like this one to the function."""
        self.is_one_operation = self.is_one_operation or is_one_operation
        if not are_constants(each for each in arguments if not isinstance(each, torch.Tensor)):
            return
        if self._native is None:
            native.equip(self, settings)
        if self._native is None:
            self.left |= {call_of(arguments)} if is_one_operation else set()
            return
        with self._lock:
            self.left = self.left - {call_of(arguments)}
            self._left_calls.add(list(arguments))
            if not self._leaves_some:
                self._leaves_some = True
                self._wind()

    def is_refused(self, way: Key, arguments: Sequence[Any]) -> bool:
        """Whether there will be no kernels for such arguments, with no tensor twice, and are none for others."""
        others, kind = any(mask == way[0] for mask, _ in self.by_call), _kind(way, arguments)
        return not others and kind in self._refusals and not kind[-1]

    def add(
        self,
        way: Key,
        arguments: Sequence[Any],
        tried: Sequence[Variant],
        settings: Settings,
        derive: Callable[[], Plan],
        *,
        pinned: bool = False,
    ) -> bool:
        """Find or make a variant for arguments that no loaded variant takes.

        Args:
            way: The way of calling.
            arguments: The arguments of the call.
            tried: The variants whose guards failed; if there are others by now, none is added.
            settings: Where to build and keep it.
            derive: Traces the reference for these arguments.
            pinned: Whether kernels are wanted even if they gain nothing over the function.

        Returns:
            Whether it was derived for these arguments, so that there is nothing left to try if its guards fail.

        Raises:
            LeftToFunction: If kernels gain nothing, and are not wanted all the same.
            OpwrightError: If it cannot be derived or built here; the same error at every later attempt.
        """
        kind = _kind(way, arguments)
        with self._lock:
            if kind in self._refusals:
                raise self._refusals[kind].again()
            if kind in self._left_kinds and not pinned:
                raise _one_operation()
            self._builds.pass_by(kind, patience_of(settings, pinned=pinned))
            known = self.by_call.get(way, ())
            if known is not tried:
                return False
            if len(known) >= _MOST_VARIANTS:
                fact = f"it was traced for {_MOST_VARIANTS} kinds of sizes already"
                raise self._refuse(kind, NoKernel(fact, hint="decide by sizes outside of the operator, or pad them"))
            if not known and sum(other[0] == way[0] for other in self.by_call) >= _MOST_VARIANTS:
                fact = f"it has kernels for {_MOST_VARIANTS} combinations of constants already"
                raise NoKernel(fact, hint="pass a value that changes from call to call as a tensor")
            try:
                with refusing_faults():
                    recorded = self._recorded(kind, arguments, known, settings, pinned=pinned)
                    variant = recorded or self._derived(kind, arguments, settings, derive, pinned=pinned)
            except LeftToFunction:
                self._left_kinds.add(kind)
                raise
            except (TracingFailed, OutsideMoved, RanMore, StillBuilding):
                raise  # perhaps a wrong call, and a right one may be of the same kind
            except OpwrightError as refusal:
                if isinstance(refusal, NumberNeeded) and refusal.only_here:
                    raise
                raise self._refuse(kind, refusal) from None
            self.plain = self.plain and variant.plain
            self.has_fed = self.has_fed or bool(variant.plan.feeding)
            self.rung = variant.rung if self.count() == 0 or variant.rung == self.rung else None
            self.by_call[way] = [variant, *known]
            self._wind()
        if self._native is None:
            native.equip(self, settings)
        return recorded is None

    def _derived(
        self, kind: Key, arguments: Sequence[Any], settings: Settings, derive: Callable[[], Plan], *, pinned: bool
    ) -> Variant:
        begun, patience_s = time.monotonic(), patience_of(settings, pinned=pinned)
        if not self._builds.has(kind):
            if (found := find_refusal(self._identity(), kind, arguments, settings)) is not None:
                raise found
            begin_shared(settings)
            try:
                plan = derive()
            except OpwrightError as refusal:
                if refusal.is_settled:
                    record_refusal(self._identity(), kind, arguments, settings, refusal)
                raise
            if plan.left_to_function and not pinned:
                self._record(kind, plan, settings)
                raise _one_operation()
            self._builds.begin(kind, plan, build_of(plan, settings), beside=patience_s is not None)
        else:
            begun -= patience_s or 0.0  # one call has waited
        plan, libraries = self._builds.end(kind, patience_s and max(patience_s - (time.monotonic() - begun), 0.0))
        variant = self._load(plan, libraries, arguments)
        self._record(kind, plan, settings)
        return variant

    def _built(self, plan: Plan, settings: Settings, arguments: Sequence[Any]) -> Variant:
        return self._load(plan, build_of(plan, settings)(), arguments)

    def refuse(self, way: Key, arguments: Sequence[Any], refusal: OpwrightError) -> None:
        """Remember that arguments have no variant."""
        self._refuse(_kind(way, arguments), refusal)

    def plans(self) -> list[Plan]:
        """The plans of the variants that are loaded."""
        return [variant.plan for variants in self.by_call.values() for variant in variants]

    def count(self, rung: RungName | None = None) -> int:
        """How many variants are loaded, of a rung or in all."""
        return sum(rung in (None, variant.rung) for variants in self.by_call.values() for variant in variants)

    def _refuse(self, kind: Key, refusal: OpwrightError) -> OpwrightError:
        self._refusals[kind] = refusal.again()
        return refusal

    def _recorded(
        self, kind: Key, arguments: Sequence[Any], known: Sequence[Variant], settings: Settings, *, pinned: bool
    ) -> Variant | None:
        """A variant that another process derived; the guards of loaded ones have failed."""
        identity = self._identity()
        if identity is None:
            return None
        store = RecordStore(settings)
        for position in range(_MOST_VARIANTS):
            record = store.read("plans", record_key(identity, kind[:-1], position))
            if record is None:
                return None
            try:
                plan = Plan.from_record(record)
                if plan.left_to_function and not pinned:
                    raise _one_operation()
                if all(variant.plan.forward.name != plan.forward.name for variant in known):
                    return self._built(plan, settings, arguments)
            except OpwrightError:
                raise
            except Exception:  # of another version of opwright
                return None
        return None

    def _record(self, kind: Key, plan: Plan, settings: Settings) -> None:
        try:
            self._write(kind, plan, settings)
        except Exception as error:  # it costs only the next process time
            _log.warning("other processes will derive %s again: %s", plan.forward.name, summary(error))

    def _write(self, kind: Key, plan: Plan, settings: Settings) -> None:
        identity = self._identity()
        if identity is None:
            return
        record = plan.to_record()
        if record is None:
            return
        store = RecordStore(settings)
        for position in range(_MOST_VARIANTS):
            key = record_key(identity, kind[:-1], position)  # a plan itself knows if no tensor may be given twice
            if store.read("plans", key) is None:
                store.write("plans", key, record)
                return


def _kind(way: Key, arguments: Sequence[Any]) -> Key:
    return way, kind_of(arguments), orders_of(arguments), given_twice(arguments)

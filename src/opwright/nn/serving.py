"""Serve a module: one operator for each state of the module and each structure of arguments."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils._pytree import TreeSpec, tree_flatten

from opwright.api.operator import Operator
from opwright.binding.autograd.recomputation import take_made
from opwright.binding.environment import are_plain
from opwright.binding.fallbacks import Fallbacks
from opwright.binding.functional import write_back
from opwright.binding.native import native
from opwright.binding.own_errors import is_wanted, runs_reference
from opwright.binding.rungs import RungName
from opwright.binding.serving.hot_path import gives_new_values
from opwright.binding.serving.last_rung import RemembersRung
from opwright.binding.serving.old_values import copied_as_it_lies
from opwright.binding.structures import NotTold, spec_of
from opwright.binding.tape import LEFT
from opwright.binding.variants.kinds import are_constants
from opwright.binding.variants.states import Outside, State
from opwright.derivation.backward import make_static
from opwright.errors import ChangesItself, NoKernel, OpwrightError, UndeclaredMutation
from opwright.nn.changed import refuse_shared
from opwright.nn.known import Call, Known, known_of
from opwright.nn.meanwhile import Meanwhile
from opwright.nn.noted import Noted
from opwright.nn.parts.cut import Cut
from opwright.nn.parts.opened import RunsByParts
from opwright.nn.reference import Forward, ModuleReference, Ran, tensor_names
from opwright.nn.telling import is_of_the_function, kernels_told, reason_told, to_function, to_parts, waiting_told
from opwright.settings import Settings
from opwright.toolchain.process.forks import Lock
from opwright.tracing.interface.flatten import Leaves
from opwright.tracing.interface.memory import given_twice
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from opwright.tracing.outside.hazards import OutsideUnknown
from opwright.tracing.outside.purity import is_third_party
from opwright.tracing.outside.ran import Codes, RanMore
from opwright.tracing.outside.reach import reads_of_module
from opwright.tracing.recording.faults import fault_of

MOST_CALLS = 32
_MOST_WALKS, _MOST_REPEATED = 8, 1
_CHANGES = "its forward changes a parameter or an argument"


class Serving(RemembersRung):
    """Serves the calls of one module.

    Args:
        module: The module; not kept alive.
        forward: Calls the module's original forward.
        cut: How the module, and those inside, are served.
        make_opened: Makes what runs the forward around its parts; None if it has none.
        closed: Why it has none, although there are modules inside; or why it is served by them alone.
        tries: Whether it is served as a whole if it can be.
        only: The attributes of the module that its forward asks for; None if that is not known.

    Attributes:
        opened: Runs the forward around its parts; None as long as the module is served as a whole, or has no parts.
        play: `(args, kwargs) -> result` in C++; LEFT for a call that the module serves, NotImplemented for one
            that is not known. None as long as there is no C++.
        refusal: Why the whole was refused last.
        rung: What the kernels are written in that C++ runs.
        changes_buffers: Whether some of them change buffers.
        has_kernels: Whether there are any.
        left_calls: How many calls the module served as written while there were none.
    """

    def __init__(
        self,
        module: nn.Module,
        forward: Forward,
        cut: Cut,
        make_opened: Callable[[], RunsByParts | None] | None,
        closed: NoKernel | None,
        *,
        tries: bool,
        only: frozenset[str] | None = None,
    ) -> None:
        super().__init__()
        self.opened: RunsByParts | None = None
        self.play: Callable[[tuple[Any, ...], dict[str, Any]], Any] | None = None
        self.rung: RungName = "cpp"
        self.changes_buffers = False
        self.has_kernels = False
        self.left_calls = 0
        self.refusal: OpwrightError | None = None
        self.cut = cut
        self._make_opened = make_opened
        self._closed = closed
        self._tries = tries
        self._forward = forward
        self._known: dict[State, Known] = {}
        self._given_up: set[bool] = set()  # in training, in evaluation: a forward that changes attributes
        self._is_full = self._changes_itself = False
        self._native: Any = None
        self._meanwhile = Meanwhile()
        self._wound: Any = None
        self._lock = Lock()
        self._name = type(module).__name__
        self._settings = Settings.from_environment()
        telling = self._settings if cut.is_asked_for else replace(self._settings, strict=False, notify=False)
        self._fallbacks = Fallbacks(self._name, telling, to_parts if make_opened else to_function)
        self._noted = Noted(self._settings)
        searched = _searched_of(module, self._noted)
        read = functools.partial(reads_of_module, only=only)
        self._outside = Outside(weakref.ref(module), read=read, searched=searched, may_search=True)
        if make_opened is not None and not tries:
            self.opened = make_opened()

    def serve(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the forward by an operator, or fall back to the original."""
        if not self._tries and self._closed is not None and self.opened is None:
            self._fallbacks.tell(self._closed)
        is_known = self._waits and self._meanwhile.has_met(args, kwargs, is_training=module.training)
        if module.training in self._given_up or not self._tries or is_known:
            return self.run_as_written(module, args, kwargs)
        try:
            return self._serve_searching(module, args, kwargs)
        except Exception as error:  # raised before or during a derivation: nothing has run yet
            if is_wanted(error):
                raise
            refusal = fault_of(error)
        self._fallbacks.tell(refusal)
        self.open(refusal)
        if isinstance(refusal, OutsideUnknown):
            self._is_full = True
        self._wind()
        result = self.run_as_written(module, args, kwargs)
        self._look_whether_it_changed()
        return result

    @runs_reference
    def run_as_written(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the module's original forward."""
        self.last_rung = "composed"
        opened = self.opened
        return self._forward(module, args, kwargs) if opened is None else opened.run(args, kwargs)

    def open(self, refusal: OpwrightError) -> None:
        """Serve the modules inside from now on, unless what refused the whole would refuse all of them."""
        self.refusal = refusal.again()
        if self._make_opened and self.opened is None and is_of_the_function(refusal):
            with self._lock:
                self.opened = self.opened or self._make_opened()

    def told(self, module: nn.Module) -> str:
        """What serves the calls of the module in the state that it is in."""
        instead = "as written" if self.opened is None else "its parts"
        closed = f"; {reason_told(self._closed)}" if self._closed else ""
        if not self._tries:
            return instead + closed.replace(";", ":", 1)
        known = next((known for state, known in [*self._known.items()] if state.holds()), None)
        calls = [] if known is None else [*known.calls.values()]
        latest = [call.operator.variants for call in calls if call.operator is not None]
        if counts := [plan.kernels for variants in latest if variants is not None for plan in variants.plans()]:
            return kernels_told(counts) + (waiting_told(native.is_coming) if self._waits else "")
        is_given_up = self._is_full or self._changes_itself or module.training in self._given_up
        refusals: list[OpwrightError | None] = [known.refusal if known else None, *map(_refusal_of, calls)]
        refusals.append(self.refusal if is_given_up else None)
        if refusal := next(filter(None, refusals), None):
            return f"{instead}: {reason_told(refusal)}{closed}"
        if any(call.operator is not None and call.operator.is_building for call in calls):
            return "as written: its kernels are still being built"
        if any(variants is not None and (variants.left or variants.is_one_operation) for variants in latest):
            return "as written: it is one operation of PyTorch, or none"
        return "not called yet"

    def equip(self, native: Any) -> None:
        """Compare states and run calls in C++ from now on."""
        self._outside.equip(native)
        self._native = native
        self._wind()

    @property
    def _waits(self) -> bool:
        """Whether states are compared in Python although C++ would do it, and that takes long or will be over soon."""
        return self._native is None and self._settings.tape != "off" and (native.is_coming or self._meanwhile.is_long)

    def _serve_searching(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call, and look again at what the module reads while traces run functions that were left out."""
        repeated = 0
        refusal = NoKernel("it runs other functions in each trace", hint="serve the modules inside of it")
        for _ in range(_MOST_WALKS):
            try:
                return self._serve(module, args, kwargs)
            except RanMore as more:
                repeated += more.codes == self._outside.searched
                if repeated > _MOST_REPEATED:
                    refusal = NoKernel(more.fact, place=more.place, hint=more.hint)
                    break
                self._outside.search(more.codes)
                if more.codes:
                    self._noted.note_functions(module, more.codes)
                self._known = {state: known for state, known in self._known.items() if state in self._outside.states}
        given = _taken_apart(args, kwargs)
        known = self._known_in(self._outside.now())
        known.calls[given.kind] = Call(None, structure=_structure_of(given.layout), refusal=refusal)
        raise refusal

    def _serve(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._meanwhile.comparing():
            state = self._outside.now()
        known = self._known_in(state)
        if self._native is None:
            native.equip(self, self._settings)
        found = state.found()
        if known.refusal is not None or found is None:
            raise (known.refusal or NoKernel("it changes meanwhile", hint="change it between calls")).again()
        members, layout, kind = _taken_apart(args, kwargs)
        leaves = [*(found[slot] for slot in known.slots), *members]
        if kind not in known.calls:
            if len(known.calls) >= MOST_CALLS:
                raise NoKernel(
                    f"there are already {MOST_CALLS} operators for its arguments",
                    hint="keep what changes from call to call in buffers, or pass it as a tensor",
                )
            changed = known.buffers if self._noted.changes_buffers(state.identity, layout) else ()
            known.calls[kind] = self._make(module, state, known, layout, members, changed)
        call = known.calls[kind]
        try:
            return self._call(call, leaves, members, (module, args, kwargs))
        except UndeclaredMutation as refusal:
            call.operator, call.refusal = None, refusal
            if call.mutated or not known.buffers:
                raise NoKernel(_CHANGES, hint="change a copy, or a buffer") from refusal
        self._noted.note(state.identity, layout)
        call = known.calls[kind] = self._make(module, state, known, layout, members, known.buffers)
        try:
            return self._call(call, leaves, members, (module, args, kwargs))
        except UndeclaredMutation as refusal:
            call.operator, call.refusal = None, refusal
            raise NoKernel(_CHANGES, hint="change a copy, or a buffer") from refusal

    def _known_in(self, state: State) -> Known:
        return self._known.get(state) or self._known.setdefault(state, known_of(state))

    def _call(
        self,
        call: Call,
        leaves: list[Any],
        members: list[Any],
        given: tuple[nn.Module, tuple[Any, ...], dict[str, Any]],
    ) -> Any:
        operator, mutated = call.operator, call.mutated
        if operator is None:
            if call.left is not None and are_constants(_constants_in(members)):
                call.left.add(members)
            return self.run_as_written(*given)
        if mutated:
            if torch.is_grad_enabled() and not are_plain(leaf for leaf in leaves if isinstance(leaf, torch.Tensor)):
                return self.run_as_written(*given)  # kernels give wrappers that require gradients, as no buffer may
            refuse_shared(leaves, mutated)
        handed = list(leaves)
        if torch.is_grad_enabled():
            for position in mutated:  # the backward pass reads the old values
                handed[position] = copied_as_it_lies(leaves[position])
        arguments = Leaves(handed)
        arguments.given = (self, *given)
        try:
            made = operator.server.serve(arguments, {})
        except ChangesItself:  # of the tensors in a wrapper; it has run on copies
            return self.run_as_written(*given)
        except Exception as error:
            if (before := take_made(error)) is not None:  # a checkpoint has seen enough
                write_back(leaves, mutated, before[1])
            raise
        self.last_rung = operator.last_rung
        if isinstance(made, Ran) and not operator.is_building and not given_twice(leaves):
            self._leave(call, operator, arguments, members, is_training=given[0].training)
        self._wind()
        if isinstance(made, Ran):
            return made.returned
        returned, values = made
        write_back(leaves, mutated, values)
        return returned

    def _leave(self, call: Call, operator: Operator, leaves: Leaves, members: list[Any], *, is_training: bool) -> None:
        """Leave calls like one that the module has served to it, if kernels would not serve them either."""
        self._look_whether_it_changed()
        if operator.reference.changes_attributes:  # type: ignore[attr-defined]  # a ModuleReference
            self._given_up.add(is_training)
        if call.left is not None and operator.server.is_ordinary(leaves) and are_constants(_constants_in(members)):
            call.left.add(members)

    def _look_whether_it_changed(self) -> None:
        self._changes_itself = not any(state.holds() for state in self._outside.states)

    def _make(
        self,
        module: nn.Module,
        state: State,
        known: Known,
        layout: TreeSpec,
        members: list[Any],
        mutated: tuple[int, ...],
    ) -> Call:
        parameters = [Parameter(name, Kind.TENSOR, False) for name in tensor_names(known.names)]
        for place, member in enumerate(members):
            kind = Kind.TENSOR if isinstance(member, torch.Tensor) else Kind.CONSTANT
            parameters.append(Parameter(f"argument_{place}", kind, False))
        reference = ModuleReference(
            module, state, known.slots, layout, mutated, self._forward, is_inside=self.cut.is_inside
        )
        held, registered = state.held(), set(map(id, (*module.parameters(), *module.buffers())))
        static = (place for place, slot in enumerate(known.slots) if id(held.get(slot)) in registered)
        make_static(reference, [parameters[place].name for place in static])  # other tensors may grow, as caches do
        told = f"{self.cut.save} {self.cut.is_inside}"  # operators may outlive the module
        operator = Operator(
            reference,
            save=self.cut.save,
            fallbacks=self._fallbacks,
            signature=Signature(tuple(parameters), None, structured=True),
            identity=lambda state: state.identity and f"{state.identity} {layout} {mutated} {told}",
            outside=self._outside,
        )
        return Call(operator, mutated, _structure_of(layout))

    def _wind(self) -> None:
        """Run in C++ what it can run by now."""
        if self._native is None:
            return
        with self._lock:
            states = [
                (state.guards, list(known.slots), known.refusal is not None, self._calls_in_cpp(known))
                for state in self._outside.states
                if state.guards is not None and (known := self._known.get(state)) is not None
            ]
            if self._wound != (states, self._is_full):
                self._wound = states, self._is_full
                self.play = self._native.module_entry(states, LEFT, self._is_full, weakref.ref(self))

    def _calls_in_cpp(self, known: Known) -> list[tuple[Any, ...]]:
        calls = []
        for call in list(known.calls.values()):
            if call.structure is None:
                continue
            call.left = call.left or self._native.LeftCalls()
            wound = call.operator.server.wound if call.operator else None
            tape, self.rung = wound or (None, self.rung)
            runs = tape.runs if tape and gives_new_values(tape, len(call.mutated)) else None
            self.has_kernels = self.has_kernels or runs is not None
            self.changes_buffers = self.changes_buffers or bool(call.mutated)
            calls.append((call.structure, call.left, runs, list(call.mutated)))
        return calls


class _Given(NamedTuple):
    """Arguments taken apart: the members, their structure, and what calls of one operator have in common."""

    members: list[Any]
    layout: TreeSpec
    kind: Hashable


def _taken_apart(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Given:
    members, layout = tree_flatten((args, kwargs))
    return _Given(members, layout, (layout, tuple([isinstance(member, torch.Tensor) for member in members])))


def _structure_of(layout: TreeSpec) -> Any:
    """The structure of arguments, for C++; None if that cannot take them apart."""
    try:
        return spec_of(layout)
    except NotTold:
        return None


def _constants_in(members: Sequence[Any]) -> list[Any]:
    return [member for member in members if not isinstance(member, torch.Tensor)]


def _refusal_of(call: Call) -> OpwrightError | None:
    if call.operator is None:
        return call.refusal
    refusal: OpwrightError | None = call.operator.reference.refusal  # type: ignore[attr-defined]  # a ModuleReference
    return refusal


def _searched_of(module: nn.Module, noted: Noted) -> Codes | None:
    """Which functions are searched at first: of a library's module only those that it has run; None if all are."""
    known = noted.functions_of(module)
    return frozenset() if known is None and is_third_party(type(module).__module__, frozenset()) else known

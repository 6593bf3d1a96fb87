"""Serve a module: one operator for each state of the module and each structure of arguments."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.utils._pytree import TreeSpec, tree_flatten

from opwright.api.operator import Operator
from opwright.binding.fallbacks import Fallbacks
from opwright.binding.native import native
from opwright.binding.own_errors import is_wanted, runs_reference
from opwright.binding.rungs import RungName
from opwright.binding.serving.hot_path import gives_new_values
from opwright.binding.serving.last_rung import RemembersRung
from opwright.binding.structures import NotTold, spec_of
from opwright.binding.tape import LEFT
from opwright.binding.variants.kinds import are_constants
from opwright.binding.variants.states import Outside, State
from opwright.derivation.backward import make_static
from opwright.derivation.save_policy import SavePolicy
from opwright.errors import NoKernel, UndeclaredMutation
from opwright.ir.names.identifiers import identifiers
from opwright.nn.noted import Noted
from opwright.nn.reference import Forward, ModuleReference, Ran
from opwright.settings import Settings
from opwright.toolchain.process.forks import Lock
from opwright.tracing.interface.flatten import Leaves
from opwright.tracing.interface.memory import memory_of
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from opwright.tracing.outside.hazards import OutsideUnknown
from opwright.tracing.outside.reach import reads_of_module
from opwright.tracing.recording.faults import fault_of

MOST_CALLS = 32
_CHANGES = "its forward changes a parameter or an argument"


@dataclass(slots=True)
class Call:
    """The calls of one structure, in one state.

    Attributes:
        operator: What serves them; None if the module does.
        mutated: Positions of the tensors that it changes.
        structure: That of the arguments, for C++; None if that cannot take them apart.
        left: The calls that are left to the module, in C++.
    """

    operator: Operator | None
    mutated: tuple[int, ...]
    structure: Any
    left: Any = None


@dataclass(slots=True)
class Known:
    """What is known of a state of the module.

    Attributes:
        slots: The slots of its tensors.
        names: Their names.
        buffers: Positions of those that are no parameters.
        refusal: Why the module serves all calls; None if operators may.
        calls: By structure of the arguments.
    """

    slots: tuple[int, ...]
    names: tuple[str, ...]
    buffers: tuple[int, ...]
    refusal: NoKernel | None
    calls: dict[Hashable, Call] = field(default_factory=dict)


class Serving(RemembersRung):
    """Serves the calls of one module.

    Args:
        module: The module; not kept alive.
        forward: Calls the module's original forward.
        save: What the backward pass may keep.

    Attributes:
        play: `(args, kwargs) -> result` in C++; LEFT for a call that the module serves, NotImplemented for one
            that is not known. None as long as there is no C++.
        rung: What the kernels are written in that C++ runs.
        changes_buffers: Whether some of them change buffers.
    """

    def __init__(self, module: nn.Module, forward: Forward, save: SavePolicy) -> None:
        super().__init__()
        self.play: Callable[[tuple[Any, ...], dict[str, Any]], Any] | None = None
        self.rung: RungName = "cpp"
        self.changes_buffers = False
        self._save = save
        self._forward = forward
        self._outside = Outside(weakref.ref(module), read=reads_of_module)
        self._known: dict[State, Known] = {}
        self._given_up: set[bool] = set()  # in training, in evaluation: a forward that changes attributes
        self._is_full = False
        self._native: Any = None
        self._wound: Any = None
        self._lock = Lock()
        self._name = type(module).__name__
        self._settings = Settings.from_environment()
        self._fallbacks = Fallbacks(self._name, self._settings)
        self._noted = Noted(self._settings)

    def serve(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the forward by an operator, or fall back to the original."""
        if module.training in self._given_up:
            return self.run_as_written(module, args, kwargs)
        try:
            return self._serve(module, args, kwargs)
        except Exception as error:  # raised before or during a derivation: nothing has run yet
            if is_wanted(error):
                raise
            refusal = fault_of(error)
        self._fallbacks.tell(refusal)
        if isinstance(refusal, OutsideUnknown):
            self._is_full = True
        self._wind()
        return self.run_as_written(module, args, kwargs)

    @runs_reference
    def run_as_written(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the module's original forward."""
        self.last_rung = "composed"
        return self._forward(module, args, kwargs)

    def equip(self, native: Any) -> None:
        """Compare states and run calls in C++ from now on."""
        self._outside.equip(native)
        self._native = native
        self._wind()

    def _serve(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        state = self._outside.now()
        known = self._known.get(state) or self._known.setdefault(state, _known_of(state))
        if self._native is None:
            native.equip(self, self._settings)
        found = state.found()
        if known.refusal is not None or found is None:
            raise (known.refusal or NoKernel("it changes meanwhile", hint="change it between calls")).again()
        members, layout = tree_flatten((args, kwargs))
        kind = (layout, tuple([isinstance(member, torch.Tensor) for member in members]))
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
            call.operator = None
            if call.mutated or not known.buffers:
                raise NoKernel(_CHANGES, hint="change a copy, or a buffer") from refusal
        self._noted.note(state.identity, layout)
        call = known.calls[kind] = self._make(module, state, known, layout, members, known.buffers)
        try:
            return self._call(call, leaves, members, (module, args, kwargs))
        except UndeclaredMutation as refusal:
            call.operator = None
            raise NoKernel(_CHANGES, hint="change a copy, or a buffer") from refusal

    def _call(
        self,
        call: Call,
        leaves: list[Any],
        members: list[Any],
        given: tuple[nn.Module, tuple[Any, ...], dict[str, Any]],
    ) -> Any:
        operator, mutated = call.operator, call.mutated
        if operator is None:
            return self.run_as_written(*given)
        if mutated:
            refuse_shared(leaves, mutated)
        handed = list(leaves)
        if torch.is_grad_enabled():
            for position in mutated:  # the backward pass reads the old values
                handed[position] = leaves[position].clone()
        arguments = Leaves(handed)
        arguments.given = given
        made = operator.server.serve(arguments, {})
        self.last_rung = operator.last_rung
        if isinstance(made, Ran):
            self._leave(call, operator, arguments, members, is_training=given[0].training)
        self._wind()
        if isinstance(made, Ran):
            return made.returned
        returned, values = made
        for position, value in zip(mutated, values, strict=True):
            leaves[position].copy_(value)
        return returned

    def _leave(self, call: Call, operator: Operator, leaves: Leaves, members: list[Any], *, is_training: bool) -> None:
        """Leave calls like one that the module has served to it, if kernels would not serve them either."""
        if operator.reference.changes_attributes:  # type: ignore[attr-defined]  # a ModuleReference
            self._given_up.add(is_training)
        constants = [member for member in members if not isinstance(member, torch.Tensor)]
        if call.left is not None and operator.server.is_ordinary(leaves) and are_constants(constants):
            call.left.add(members)

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
        reference = ModuleReference(module, state, known.slots, layout, mutated, self._forward)
        held, registered = state.held(), set(map(id, (*module.parameters(), *module.buffers())))
        static = (place for place, slot in enumerate(known.slots) if id(held.get(slot)) in registered)
        make_static(reference, [parameters[place].name for place in static])  # other tensors may grow, as caches do
        operator = Operator(
            reference,
            save=self._save,
            signature=Signature(tuple(parameters), None, structured=True),
            identity=lambda state: state.identity and f"{state.identity} {layout} {mutated} {self._save}",
            outside=self._outside,
        )
        try:
            structure = spec_of(layout)
        except NotTold:
            structure = None
        return Call(operator, mutated, structure)

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
            if call.structure is None or call.operator is None:
                continue
            call.left = call.left or self._native.LeftCalls()
            tape, self.rung = call.operator.server.wound or (None, self.rung)
            runs = tape.runs if tape and gives_new_values(tape, len(call.mutated)) else None
            self.changes_buffers = self.changes_buffers or bool(call.mutated)
            calls.append((call.structure, call.left, runs, list(call.mutated)))
        return calls


def _known_of(state: State) -> Known:
    layers = state.reads.layers
    assert layers is not None
    slots, names, are_parameters = zip(*layers.tensors, strict=True) if layers.tensors else ((), (), ())
    buffers = tuple(position for position, is_parameter in enumerate(are_parameters) if not is_parameter)
    return Known(slots, names, buffers, _refusal(layers.hooked))


def _refusal(hooked: Sequence[str]) -> NoKernel | None:
    """Why a module must run as written: hooks inside of it must run, or parametrized tensors are cached."""
    if nn.modules.module._has_any_global_hook():
        return NoKernel(
            "there are global module hooks, which must run", hint="remove them with the .remove() of their handles"
        )
    if parametrize._cache_enabled:
        return NoKernel("parametrized tensors are cached", hint="call it outside of parametrize.cached()")
    if hooked:
        return NoKernel(f"its module '{hooked[0]}' has hooks, which must run", hint="put hooks on the outermost module")
    return None


def tensor_names(dotted: Sequence[str]) -> list[str]:
    """Distinct names for kernels: `0.weight` becomes `layer_0_weight`."""
    plain = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in dotted]
    names = identifiers([f"layer_{name}" if name[:1].isdigit() else name for name in plain])
    return [f"{name}_at_{place}" if names.count(name) > 1 else name for place, name in enumerate(names)]


def refuse_shared(leaves: Sequence[Any], mutated: Sequence[int]) -> None:
    """Refuse kernels if a mutated tensor shares memory with another.

    Raises:
        NoKernel: If it does, or if torch does not allow the change.
    """
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided]
    memories = [memory_of(tensor) for tensor in tensors]
    for position in mutated:
        target = leaves[position]
        if target.layout != torch.strided or memories.count(memory_of(target)) > 1:
            raise NoKernel("a buffer that it changes shares memory with another tensor", hint="register its .clone()")
        if torch.is_grad_enabled() and target.requires_grad:
            raise NoKernel("a buffer that it changes requires a gradient", hint="call .requires_grad_(False) on it")

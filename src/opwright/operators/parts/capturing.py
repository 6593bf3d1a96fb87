"""Functions that use tensors from outside: these are the first arguments of an operator that serves the calls.

Guards find them at every call, so another tensor in the same place is followed, and gradients reach it. Each state of
what else the function reads has an operator.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.binding.dispatcher.registered import Registered
from opwright.binding.fallbacks import Fallbacks
from opwright.binding.native import native
from opwright.binding.own_errors import awaits_tensors, runs_reference
from opwright.binding.serving.last_rung import RemembersRung
from opwright.binding.transforms.family import Family
from opwright.binding.variants.by_state import VariantsByState
from opwright.binding.variants.states import OneState, Outside, State
from opwright.derivation.backward import make_static
from opwright.errors import ChangesItself, NoKernel, OutsideTensor, UndeclaredMutation
from opwright.ir.names.fresh import fresh
from opwright.settings import Settings
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from opwright.tracing.outside.reach import reads_with_tensors
from opwright.tracing.recording.standing import Standing

_MOST_TENSORS = 64


@dataclass(frozen=True, slots=True)
class Known:
    """What serves a state: an operator, and the slots of the tensors that it is given."""

    operator: Any
    slots: tuple[int, ...]


class Captured:
    """A function of the tensors that it uses from outside, then of its own arguments.

    Args:
        function: The function as written.
        state: The state, which tells where the tensors are.
        slots: Their slots.
    """

    def __init__(self, function: Callable[..., Any], state: State, slots: Sequence[int]) -> None:
        functools.update_wrapper(self, function)
        self._state = state
        self._slots = tuple(slots)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function, with the given tensors in the places of those outside.

        Raises:
            ChangesItself: If there are no tensors any more where they were.
        """
        held, given = self._state.held(), args[: len(self._slots)]
        if any(slot not in held for slot in self._slots):
            raise ChangesItself("what it reads outside has changed meanwhile", hint="change it between calls")
        tensors = [held[slot] for slot in self._slots]
        args = args[len(tensors) :]
        if all(tensor is other for tensor, other in zip(tensors, given, strict=True)):
            return self.__wrapped__(*args, **kwargs)  # type: ignore[attr-defined]  # set by update_wrapper
        arguments = {id(tensor): other for tensor, other in zip(tensors, given, strict=True)}
        with Standing({id(tensor): tensor for tensor in tensors}, arguments):
            return self.__wrapped__(*args, **kwargs)  # type: ignore[attr-defined]


class Capturing:
    """Serves the calls of an operator whose function uses tensors from outside.

    Args:
        function: The function as written.
        signature: Its parameters.
        freeze: Names of values that are taken for constants.
        settings: Where the extension module is.
        fallbacks: Warned why the function serves a call.
        rungs: Remembers which rung served the last call.
        make: Makes the operators: `(reference, signature=, outside=, identity=)`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        freeze: Sequence[str],
        settings: Settings,
        fallbacks: Fallbacks,
        rungs: RemembersRung,
        make: Callable[..., Any],
    ) -> None:
        self._function = function
        self._signature = signature
        self._settings = settings
        self._fallbacks = fallbacks
        self._rungs = rungs
        self._make = make
        self._root = getattr(function, "reads_from", function)
        read = lambda root, _: reads_with_tensors(root, frozenset(freeze))  # noqa: E731
        self._outside = Outside(self._root, read=read)
        self._known: dict[State, Known] = {}
        self._native: Any = None

    @property
    def operators(self) -> list[Any]:
        """Those that serve calls, one for each state."""
        return [known.operator for known in [*self._known.values()]]

    def equip(self, native: Any) -> None:
        """Compare states in C++ from now on."""
        self._native = native
        self._outside.equip(native)

    def serve(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, pinned: bool = False) -> Any:
        """Serve a call; a pinned one raises instead of running the function."""
        try:
            operator, tensors = self.now()
            result = operator.serving.serve((*tensors, *args), kwargs, pinned=pinned)
        except (NoKernel, UndeclaredMutation) as error:
            if pinned:
                raise
            refusal = error.again()
        else:
            rungs, rung = self._rungs, operator.serving.last_rung
            if rungs.unusual_rungs or rungs.usual_rung is not rung or rung is None:
                rungs.last_rung = rung
            return result
        result = self._serve_by_function(args, kwargs)
        self._fallbacks.tell(refusal)
        return result

    def now(self) -> tuple[Any, list[torch.Tensor]]:
        """The operator for the current state, and the tensors that are its first arguments.

        Raises:
            NoKernel: If there are no such tensors, or too many, or hooks that must run.
        """
        for state in self._outside.states:
            known = self._known.get(state)
            if known is not None and (found := state.found()) is not None:
                return known.operator, [found[slot] for slot in known.slots]
        state = self._outside.now()
        known = self._known.setdefault(state, self._known_of(state))
        if self._native is None:
            native.equip(self, self._settings)
        if (found := state.found()) is None:
            raise NoKernel("what it reads outside changes meanwhile", hint="change it between calls")
        return known.operator, [found[slot] for slot in known.slots]

    @runs_reference
    def _serve_by_function(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._rungs.last_rung = "composed"
        return self._function(*args, **kwargs)

    def _known_of(self, state: State) -> Known:
        layers = state.reads.layers
        assert layers is not None
        if layers.hooked:
            raise NoKernel(f"its module '{layers.hooked[0]}' has hooks, which must run", hint="remove the hooks")
        if not 0 < len(layers.tensors) <= _MOST_TENSORS:
            fact = f"it can reach {len(layers.tensors)} tensors outside of its arguments"
            raise NoKernel(fact, hint="pass those that it uses")
        slots = tuple(slot for slot, _, _ in layers.tensors)
        names = _names([label for _, label, _ in layers.tensors], self._signature)
        reference = Captured(self._function, state, slots)
        make_static(reference, names)
        first = [Parameter(name, Kind.TENSOR, False) for name in names]
        signature = Signature((*first, *self._signature.parameters), None, structured=True, name=self._signature.name)
        return Known(self._make(reference, signature=signature, outside=OneState(self._root, state)), slots)


class Captures:
    """The part of an operator that takes tensors from outside for arguments."""

    _server: Any
    _serving: Any
    _outside: Outside
    _registered: Registered
    _make_capturing: Callable[[], Capturing] | None = None
    _make_relative: Callable[..., Any]
    _settings: Settings
    _fallbacks: Fallbacks
    _signature: Signature
    reference: Callable[..., Any]
    _captured: Capturing | None = None
    _functional: Any
    _variants: VariantsByState
    _family: Family[Any]

    @property
    def serving(self) -> Any:
        """What serves calls that no compiler traces."""
        return self._serving

    @property
    def can_capture(self) -> bool:
        """Whether tensors from outside may become arguments of its kernels."""
        return self._make_capturing is not None

    @awaits_tensors
    def serve(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, pinned: bool = False) -> Any:
        """Serve a call; a pinned one raises instead of running the reference."""
        if self._captured is not None:
            return self._captured.serve(args, kwargs, pinned=pinned)
        try:
            return self._server.serve(args, kwargs, pinned=pinned)
        except OutsideTensor as refusal:
            if not self.captures(refusal):
                raise
        self.capture()
        return (self._captured or self._server).serve(args, kwargs, pinned=pinned)

    @property
    def is_building(self) -> bool:
        """Whether kernels are being built that no call waits for (OPWRIGHT_PATIENCE)."""
        return self._variants.are_waiting or any(flat.is_building for flat in self._flats)

    @property
    def built_in_s(self) -> float:
        """How long compilers took for one of its calls in this process, the longest; 0.0 if none was compiled."""
        longest: float = max(self._variants.built_in_s, *(flat.built_in_s for flat in self._flats), 0.0)
        return longest

    @property
    def _flats(self) -> list[Any]:
        """The operators that serve its calls, of flat arguments or of more."""
        of_tensors = [] if self._captured is None else self._captured.operators
        return [*([self._functional] if self._functional else []), *self._family.flats, *of_tensors]

    def serve_below_autograd(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call that records no gradients."""
        if self._captured is None:
            return self._server.serve_below_autograd(args, kwargs)
        with torch.no_grad():
            return self._captured.serve(args, kwargs)

    def serve_by_reference(self, args: tuple[Any, ...]) -> Any:
        """Run the function as written."""
        return self._server.serve_by_reference(args)

    def let_capture(self, freeze: Sequence[str]) -> None:
        """Let tensors that the function uses from outside be arguments; operators derived from this one do not."""
        self._outside.may_capture = True
        how = (self._settings, self._fallbacks, self._server, self._make_relative)
        self._make_capturing = functools.partial(Capturing, self.reference, self._signature, freeze, *how)

    def captures(self, refusal: OutsideTensor) -> bool:
        """Whether this operator can make an argument of what a derivation has met."""
        return self.can_capture and refusal.becomes_an_argument

    def capture(self) -> None:
        """Have the tensors that the function uses from outside be arguments from now on, if they can be."""
        assert self._make_capturing is not None
        capturing = self._make_capturing()
        try:
            capturing.now()
        except NoKernel:
            self._outside.may_capture = False
            return
        self._captured = capturing
        self._registered.inline()  # compilers do not know of the tensors that the whole would be given
        if self._serving is self._server:
            self._serving = capturing


def _names(labels: Sequence[str], signature: Signature) -> list[str]:
    """Names for the tensors: that of a global or an attribute; none is that of a parameter."""
    taken = [parameter.name for parameter in signature.parameters]
    names: list[str] = []
    for label in labels:
        word = re.sub(r"\W+", "_", label.removeprefix("global "), flags=re.ASCII).strip("_") or "tensor"
        names.append(fresh(f"tensor_{word}" if word[0].isdigit() else word, [*taken, *names]))
    return names

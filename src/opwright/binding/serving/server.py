"""Serving calls: by a loaded kernel, by one found on disk or derived now, or by the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from opwright.binding.autograd.kernels import Declined, run_forward, why_declined
from opwright.binding.autograd.node import Chosen, apply
from opwright.binding.autograd.recomputation import ends_recomputation, note_made
from opwright.binding.dispatcher.autocast import is_autocast
from opwright.binding.environment import (
    PLAIN_TYPES,
    are_abstract,
    are_plain,
    is_compiling,
    is_compiling_or_exporting,
    is_overheard,
    is_quiet,
    is_recorded,
)
from opwright.binding.fallbacks import Fallbacks
from opwright.binding.own_errors import is_for_the_caller, is_wanted
from opwright.binding.rungs import RungName
from opwright.binding.serving.by_reference import ServesByReference
from opwright.binding.serving.fed_outputs import run_in_cpp
from opwright.binding.serving.numbers import Numbers, constants_of, needed_in
from opwright.binding.tape import LEFT, Flat, Tape
from opwright.binding.transforms.levels import are_transformed
from opwright.binding.variants.backends import backend_for, examine
from opwright.binding.variants.by_state import VariantsByState
from opwright.binding.variants.kinds import Key, are_constants, is_among
from opwright.binding.variants.states import OutsideMoved, State
from opwright.binding.variants.variant import Plan, Variant
from opwright.binding.variants.variants import Variants
from opwright.errors import (
    LeftToFunction,
    NoKernel,
    OpwrightError,
    StillBuilding,
    TracingFailed,
    UndeclaredMutation,
    UnsupportedReturn,
)
from opwright.ir.names.identifiers import identifiers
from opwright.settings import Settings
from opwright.tracing.interface.signature import Kind, Signature
from opwright.tracing.outside.hazards import OutsideUnknown
from opwright.tracing.outside.ran import RanMore, for_good
from opwright.tracing.recording.faults import fault_of

_is_grad_enabled = torch.is_grad_enabled
_MOST_TRACES = 3  # of a function that changes what it reads while it is traced


class Server(ServesByReference):
    """Serves the calls of one operator.

    Args:
        written: The function as written.
        reference: The same, of arguments in order.
        fallback: The same for the original arguments, if these were flattened.
        signature: Its parameters.
        settings: Where to build.
        fallbacks: Warned why the reference serves a call.
        variants: The loaded kernels.
        numbers: Which numbers these are given.
        derive: `(arguments, whether gradients are recorded, state) -> plan` for arguments that no variant takes.
        serve_transformed: Serves calls under function transforms and with dual tensors; returns the rung too.
        serve_compiled: Serves calls under compilers and exporters, and tensors without data.
        serve_inside: Serves calls with tensors that hold others; NotImplemented for others.
        serve_cast: Serves calls under autocast by its policy; None if there is none, and the reference serves them.
    """

    def __init__(
        self,
        written: Callable[..., Any],
        reference: Callable[..., Any],
        fallback: Callable[..., Any],
        signature: Signature,
        settings: Settings,
        fallbacks: Fallbacks,
        variants: VariantsByState,
        numbers: Numbers,
        derive: Callable[[Sequence[Any], bool, State], Plan],
        serve_transformed: Callable[[Sequence[Any]], tuple[Any, RungName | None]],
        serve_compiled: Callable[[Sequence[Any]], Any],
        serve_inside: Callable[[Sequence[Any]], Any],
        serve_cast: Callable[[Sequence[Any]], Any] | None = None,
    ) -> None:
        super().__init__(written, reference, fallback)
        self._signature = signature
        self._settings = settings
        self._fallbacks = fallbacks
        self._variants = variants
        self._latest: Variants | None = None
        self._is_beyond = False  # what it reads outside has had too many values
        self._derive = derive if hasattr(reference, "refused") else for_good(derive)
        self._serve_transformed = serve_transformed
        self._serve_compiled = serve_compiled
        self._serve_inside = serve_inside
        self._serve_cast = serve_cast
        self.serve_spread: Callable[[tuple[Any, ...], dict[str, Any]], Any] | None = None  # planned, of DTensors
        self._arity = len(signature.parameters)
        self._only_tensors = all(p.kind is Kind.TENSOR and not p.optional for p in signature.parameters)
        self._numbers = numbers
        self._names = identifiers([parameter.name for parameter in signature.parameters])

    @property
    def flat(self) -> tuple[Flat, RungName | None] | None:
        """What C++ knows of calls of flat arguments, and what its kernels are written in; None if it knows nothing."""
        latest = self._latest
        return (latest.flat, latest.rung) if latest and latest.flat and not latest.left else None

    @property
    def wound(self) -> tuple[Tape, RungName] | None:
        """What runs calls of flat arguments in C++, and what its kernels are written in; None if nothing does."""
        latest = self._latest
        return (latest.tape, latest.rung) if latest and latest.tape and latest.rung else None

    def serve(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, pinned: bool = False) -> Any:
        """Serve a call; a pinned one raises instead of running the reference."""
        latest = self._latest
        if latest is not None and latest.left and not pinned and is_quiet():
            given = self._signature.bind(args, kwargs) if kwargs or len(args) != self._arity else args
            if self.leaves(given):
                latest.leave(given, self._settings, is_one_operation=True)  # C++ may be there by now
                return self.run_instead(given)
        result: Any = NotImplemented
        if latest is not None and not is_compiling():
            try:
                if (play := latest.play_pinned if pinned else latest.play) is not None:
                    result = play(*args, **kwargs)
                    if result is not NotImplemented and result is not LEFT:
                        rung = latest.rung or self._rung_for(args, kwargs)
                        if self.unusual_rungs or rung is not self.usual_rung:
                            self.remember_usual(rung)
                        return result
                elif not kwargs and self._are_plain(latest, args) and is_quiet() and latest.state.holds():
                    return self._run(latest, args, ())
            except (Declined, NotImplementedError):  # torch has no kernel for a nested tensor
                pass
            except Exception as error:  # a guard fails; the slow path finds out which
                if is_wanted(error):
                    raise
        if latest is not None and result is LEFT:
            return self.serve_left(args, kwargs)
        if self.serve_spread is not None and (result := self.serve_spread(args, kwargs)) is not NotImplemented:
            return result
        if self._is_beyond and not pinned and is_quiet() and self._variants.is_beyond():
            return self.serve_left(args, kwargs)
        if kwargs or len(args) != self._arity:
            args = self._signature.bind(args, kwargs)
        return self._serve_slowly(args, pinned=pinned)

    def _are_plain(self, latest: Variants, args: tuple[Any, ...]) -> bool:
        """Whether Python can run what is at hand without looking further: for tensors, and giving tensors."""
        if not (self._only_tensors and len(args) == self._arity and latest.is_at_hand and are_plain(args)):
            return False
        return not are_transformed(args)

    def serve_below_autograd(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call without recording gradients, even if its tensors require them."""
        return self.serve_leaves_below_autograd(self._signature.bind(args, kwargs))

    def serve_leaves_below_autograd(self, args: Sequence[Any]) -> Any:
        """The same for checked arguments."""
        return self._serve_slowly(args, pinned=False, gradients=False)

    def serve_by(self, rung: RungName, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Serve a call by another rung's function if kernels could serve it; else by the reference."""
        if not self.is_ordinary(args):
            return self.serve_by_reference(args)
        result = function(args)
        self.last_rung = rung
        return result

    def _run(self, variants: Variants, args: Sequence[Any], constants: Key) -> Any:
        """Run loaded kernels; raises Declined if there are none for these arguments."""
        if _is_grad_enabled() and True in (mask := self._mask(args)):
            chosen = Chosen(variants.by_call.get((mask, constants), ()))
            try:
                result = apply(chosen, *args)
            except Exception as error:
                if ends_recomputation(error):
                    note_made(error, self._rebuilt(chosen.variant, chosen.made, args))
                raise
            self.last_rung = chosen.variant.rung
            return result if chosen.variant.plain else self._rebuilt(chosen.variant, result, args)
        return self._run_forward(variants, args, constants)

    def _run_forward(self, variants: Variants, args: Sequence[Any], constants: Key) -> Any:
        variant, made = run_forward(variants.by_call.get(((), constants), ()), args)
        self.last_rung = variant.rung
        return made[0] if variant.bare else made if variant.plain else self._rebuilt(variant, made, args)

    def _rebuilt(self, variant: Variant, made: Sequence[torch.Tensor], args: Sequence[Any]) -> Any:
        """The structure that the reference returns."""
        result = variant.plan.result
        return result.rebuild(made, args) if result.takes(args) else self.serve_by_reference(args)

    def _mask(self, args: Sequence[Any]) -> tuple[bool, ...]:
        """Which arguments require gradients."""
        return tuple([(self._only_tensors or isinstance(a, torch.Tensor)) and a.requires_grad for a in args])

    def _serve_slowly(self, args: Sequence[Any], *, pinned: bool, gradients: bool = True) -> Any:
        """Serve by a kernel found or made now; if that fails unexpectedly, by the reference."""
        try:
            return self._serve_found_or_made(args, pinned=pinned, gradients=gradients)
        except Exception as error:
            if pinned or isinstance(error, RanMore) or is_for_the_caller(error):  # a module reads more
                raise
            fault = fault_of(error)
        return self.run_instead(args, fault if self.is_ordinary(args) else None, lambda: self._fallbacks.tell(fault))

    def _serve_found_or_made(self, args: Sequence[Any], *, pinned: bool, gradients: bool) -> Any:
        """Find or make the variant for these arguments, or run the reference with a warning."""
        if is_compiling_or_exporting():
            return self._serve_compiled(args)
        if self._serve_cast is not None and is_autocast():
            return self._serve_cast(args)
        if are_transformed(args):
            if is_overheard():
                return self.serve_by_reference(args)
            result, self.last_rung = self._serve_transformed(args)
            return result
        if are_abstract(args):
            return self._serve_compiled(args) if is_recorded() else self.serve_by_reference(args)
        if not self.is_ordinary(args):
            result = self._serve_inside(args)
            return self.run_instead(args) if result is NotImplemented else result
        return self._serve_plainly(args, pinned=pinned, gradients=gradients)

    def _serve_plainly(self, args: Sequence[Any], *, pinned: bool, gradients: bool) -> Any:
        """Serve a plain call, by variants for the current state."""
        refusal: NoKernel = OutsideMoved(
            "what it reads outside changes all the time", hint="pass what changes as an argument"
        )
        for _ in range(_MOST_TRACES):
            try:
                variants = self._latest = self._variants.now()
                result = self._serve_in_state(variants, args, pinned=pinned, gradients=gradients)
                self._variants.keep_up(variants, args)
                return result
            except (OutsideUnknown, StillBuilding) as unserved:
                refusal, self._is_beyond = unserved, self._variants.is_beyond()
                break
            except LeftToFunction:
                if pinned:
                    raise
                return self._serve_what_is_left(variants, args, gradients=gradients)
            except OutsideMoved as moved:
                self._variants.forget(variants)
                refusal = moved
        if pinned:
            raise refusal
        reason = None if isinstance(refusal, StillBuilding) else refusal
        return self.run_instead(args, reason, lambda: self._fallbacks.tell(refusal))

    def _serve_what_is_left(self, variants: Variants, args: Sequence[Any], *, gradients: bool) -> Any:
        """Run the function as written, because kernels gain nothing over it."""
        if gradients:
            variants.leave(args, self._settings, is_one_operation=True)
        return self.run_instead(args)

    def leaves(self, args: Sequence[Any]) -> bool:
        """Whether calls like this one are left to the function, as it is now, and C++ does not know."""
        return self._latest is not None and is_among(self._latest.left, args) and self.is_unchanged()

    def is_unchanged(self) -> bool:
        """Whether the function reads the same outside of its arguments as in the last call that was not left to it."""
        return self._latest is not None and self._latest.state.holds()

    def _serve_in_state(self, variants: Variants, args: Sequence[Any], *, pinned: bool, gradients: bool) -> Any:
        """Serve a call by the variants of a state, or by the reference."""
        needed: dict[int, bool] = {}  # positions of numbers that kernels are specialised to
        while (prepared := self._numbers.prepare(args, needed))[0] is not args:
            arguments, constants = prepared
            way, recording = self._way(arguments, constants, gradients)
            try:
                result = self._run_added(variants, arguments, way, recording, needed, pinned=pinned)
                self._numbers.settle(args, needed)
                return result
            except (OutsideMoved, RanMore, LeftToFunction, StillBuilding):
                raise
            except (OpwrightError, Declined) as refusal:
                if isinstance(refusal, TracingFailed):
                    variants.refuse(way, arguments, refusal)
                needed |= needed_in(arguments, refusal, self._names)
                if way in variants.by_call:  # but not for these values
                    needed = {position: True for position, only_here in needed.items() if only_here}
                    break
        result = self._serve_as_given(variants, args, needed, pinned=pinned, gradients=gradients)
        if self.last_rung != "composed":
            self._numbers.settle(args, needed)
        return result

    def _way(self, args: Sequence[Any], constants: Key, gradients: bool) -> tuple[Key, bool]:
        """The way of calling, and whether gradients are recorded."""
        mask = self._mask(args)
        recording = gradients and torch.is_grad_enabled() and True in mask
        return (mask if recording else (), constants), recording

    def _serve_as_given(
        self, variants: Variants, args: Sequence[Any], needed: Mapping[int, bool], *, pinned: bool, gradients: bool
    ) -> Any:
        way, recording = self._way(args, constants_of(args), gradients)
        refusal: OpwrightError
        is_for_good = True
        try:
            return self._run_added(variants, args, way, recording, needed, pinned=pinned)
        except (UnsupportedReturn, UndeclaredMutation, OutsideMoved, RanMore, LeftToFunction, StillBuilding):
            raise
        except OpwrightError as error:
            if not isinstance(error, TracingFailed) and (pinned or is_for_the_caller(error)):
                raise
            refusal = error if pinned else error.again()  # a traceback would keep the arguments in a cycle with it
        except Declined:
            refusal = why_declined(variants.by_call.get(way, ()), args)
            variants.refuse(way, args, refusal)
            is_for_good = False

        def settle() -> None:
            if isinstance(refusal, TracingFailed):  # and the call is not a wrong one, which raises its own error
                variants.refuse(way, args, refusal)
                if pinned:
                    raise refusal
            self._fallbacks.tell(refusal)
            if gradients and is_for_good and variants.is_refused(way, args):
                variants.leave(args, self._settings)

        return self.run_instead(args, refusal, settle)

    def _run_added(
        self,
        variants: Variants,
        args: Sequence[Any],
        way: Key,
        recording: bool,
        needed: Mapping[int, bool],
        *,
        pinned: bool,
    ) -> Any:
        """Run kernels, found on disk or derived if necessary; raises Declined if the guards of a derived one fail."""

        def derive() -> Plan:
            examine(backend_for(args, self._settings), self._settings)  # before the work of tracing
            return self._derive(args, recording, variants.state)

        run = self._run if recording else self._run_forward
        derived = False
        while True:
            tried = variants.by_call.get(way, ())
            try:
                if recording and tried:
                    found = run_in_cpp(variants, args, self._numbers, needed, pinned=pinned)
                    if found is not NotImplemented:
                        self.last_rung = variants.rung or tried[0].rung
                        return found
                return run(variants, args, way[1])
            except Declined:
                if derived:
                    raise
            derived = variants.add(way, args, tried, self._settings, derive, pinned=pinned)

    def is_ordinary(self, args: Sequence[Any]) -> bool:
        """Whether kernels may serve: no active mode, plain nonempty tensors, and constants."""
        if is_overheard() or are_transformed(args):
            return False
        rest = []
        for arg in args:
            if type(arg) in PLAIN_TYPES:
                if arg.is_nested or arg.numel() == 0:
                    return False
            elif isinstance(arg, torch.Tensor):
                return False
            else:
                rest.append(arg)
        return not rest or (not self._only_tensors and are_constants(rest))

    def _rung_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RungName:
        """What kernels for these arguments are written in, where not all are written in one language."""
        return backend_for(self._signature.bind(args, kwargs), self._settings)

"""Serve calls by handwritten rungs, and by derived ones where these do not support a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from opwright.binding.autograd.derived_node import GradientsOf
from opwright.binding.fallbacks import Fallbacks
from opwright.binding.rungs import RungName, Way
from opwright.binding.serving.server import Server
from opwright.errors import (
    CacheUnusable,
    CompilerMissing,
    ImplementationRefused,
    LibraryUnloadable,
    NoKernel,
    OpwrightError,
    UnsafeCache,
)
from opwright.handwritten.contracts import Subject
from opwright.handwritten.expected import Expected, ReferenceRefuses
from opwright.handwritten.implement import implemented
from opwright.handwritten.node import Written, record
from opwright.handwritten.passes import Passes
from opwright.settings import Settings
from opwright.tracing.interface.orders import in_order
from opwright.tracing.interface.signature import Signature, place_of
from opwright.tracing.recording.faults import fault_of, line_of_ours

# What this machine lacks leads to a fallback; errors in an author's source or results are raised.
_OF_THE_MACHINE = (CacheUnusable, LibraryUnloadable, UnsafeCache)
_FASTEST_FIRST: tuple[RungName, ...] = ("cuda", "cpp", "function")


class WrittenServer:
    """Serves the calls of one operator with handwritten rungs.

    Args:
        name: Its name, without namespace.
        reference: The function as written, taking every argument by position.
        signature: Its parameters.
        settings: Where to build.
        derived: Serves calls that they do not support, and calls under transforms and modes.
        gradients_of: The derived operators of the gradients.
        fallbacks: Records why a derived kernel serves a call.

    Raises:
        ImplementationRefused: If the operator takes or returns containers, or changes arguments.
    """

    def __init__(
        self,
        name: str,
        reference: Callable[..., Any],
        signature: Signature,
        settings: Settings,
        derived: Any,
        gradients_of: GradientsOf,
        fallbacks: Fallbacks,
    ) -> None:
        if not isinstance(derived, Server) or signature.structured:
            raise ImplementationRefused(
                f"{name} cannot be written by hand: it takes or returns containers, or changes its arguments",
                place=place_of(reference),
                hint="write an operator of plain tensors (x: torch.Tensor), and call it from a function that "
                "handles the containers",
            )
        self._derived = derived
        self._signature = signature
        self._expected = Expected(reference)
        self._subject = Subject(name, reference, signature, self._expected, settings)
        self._gradients_of = gradients_of
        self._fallbacks = fallbacks
        self._arity = len(signature.parameters)
        self._rungs: dict[RungName, Passes] = {}

    @property
    def last_rung(self) -> RungName | None:
        """The rung that served the last call of this thread; None before the first."""
        return self._derived.last_rung

    @last_rung.setter
    def last_rung(self, rung: RungName | None) -> None:
        self._derived.last_rung = rung

    def implement(self, rung: RungName, function: Any, options: Mapping[str, Any]) -> Way:
        """Serve calls by a rung from now on.

        Raises:
            ImplementationRefused, FunctionMissing, WrongDeclaration: If the sources do not match the operator.
        """
        passes = implemented(self._subject, rung, function, options)
        self._rungs[rung] = passes
        serve = partial(self._serve_pinned, rung)
        return Way("written", serve, passes.examine, passes.count, source=passes.source)

    def serve(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call by the fastest rung that supports it."""
        return self._serve(args, kwargs, gradients=True, otherwise=self._derived.serve)

    def serve_below_autograd(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call without recording gradients, even if its tensors require them."""
        return self._serve(args, kwargs, gradients=False, otherwise=self._derived.serve_below_autograd)

    def serve_by_reference(self, args: Sequence[Any]) -> Any:
        """Run the function as written."""
        return self._derived.serve_by_reference(args)

    def laid_out(self, result: Any, args: Sequence[Any]) -> Any:
        """The results of a handwritten rung, as the reference lays them out: so the dispatcher is told."""
        outputs = (result,) if isinstance(result, torch.Tensor) else result
        found = tuple(map(in_order, outputs, self._expected(args).orders))
        return found[0] if isinstance(result, torch.Tensor) else found

    def _serve(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, gradients: bool, otherwise: Callable[..., Any]
    ) -> Any:
        if kwargs or len(args) != self._arity:
            args, kwargs = self._signature.bind(args, kwargs), {}
        if self._derived.is_ordinary(args):
            for rung in _FASTEST_FIRST:
                if rung in self._rungs:
                    try:
                        return self._run(rung, args, gradients=gradients)
                    except (NoKernel, CompilerMissing):
                        continue
                    except Exception as error:
                        if not _is_no_mistake_of_the_author(error):
                            raise
                        self._fallbacks.tell(fault_of(error), "its derived kernels")
        return otherwise(args, kwargs)

    def _serve_pinned(self, rung: RungName, *args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != self._arity:
            args = self._signature.bind(args, kwargs)
        if not self._derived.is_ordinary(args):
            return self._derived.serve(args, {})
        return self._run(rung, args, gradients=True)

    def _run(self, rung: RungName, args: Sequence[Any], *, gradients: bool) -> Any:
        """Run the passes of a rung.

        Raises:
            NoKernel: If they do not support these arguments.
        """
        passes = self._rungs[rung]
        try:
            expected = self._expected(args)
            if gradients and torch.is_grad_enabled() and _wants_gradients(args):
                outputs = record(Written(passes, expected, self._gradients_of), *args)
            else:
                outputs = passes.forward(args, expected, recording=False).outputs
        except ReferenceRefuses:
            return self._derived.serve_by_reference(args)
        self.last_rung = rung
        return outputs[0] if expected.bare else outputs


def _is_no_mistake_of_the_author(error: Exception) -> bool:
    if isinstance(error, OpwrightError):
        return isinstance(error, _OF_THE_MACHINE)
    return line_of_ours(error) is not None


def _wants_gradients(args: Sequence[Any]) -> bool:
    for arg in args:  # noqa: SIM110 - any() with a generator costs three times as much
        if isinstance(arg, torch.Tensor) and arg.requires_grad:
            return True
    return False

"""An operator at torch's dispatcher: what `torch.ops.<namespace>.<name>` runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch._ops import OpOverload

from opwright.binding.autograd.derived_node import GradientsOf
from opwright.binding.autograd.recorded_whole import call_whole
from opwright.binding.dispatcher.autocast import AutocastPolicy, is_autocast, without_autocast
from opwright.binding.dispatcher.registration import keeping_sizes_inside, register
from opwright.binding.dispatcher.results import owned
from opwright.binding.environment import are_abstract, is_compiling_or_exporting, is_recorded, is_transformed
from opwright.binding.rungs import RungName
from opwright.binding.variants.variant import Plan
from opwright.tracing.interface.signature import Signature
from opwright.tracing.recording.randomness import draws


class Serving(Protocol):
    """What serves the calls of an operator."""

    @property
    def last_rung(self) -> RungName | None:
        """The rung that served the last call of this thread."""

    def serve(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call."""

    def serve_below_autograd(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call that records no gradients."""

    def serve_by_reference(self, args: tuple[Any, ...]) -> Any:
        """Run the function as written."""


class Registered:
    """One operator.

    Args:
        name: "namespace::name".
        signature: Its parameters.
        reference: The function as written.
        server: Serves its calls.
        gradients_of: Returns the operators of the gradients for a call made now.
        autocast: The policy under autocast.
        gives_what_kernels_give: Whether results are new tensors, as those of kernels.
        inline: Whether compilers and exporters see the operations of the reference.

    Attributes:
        overload: The operator at the dispatcher; None before `register`, and if another has taken its name.
        is_replaced: Whether another has.
    """

    def __init__(
        self,
        name: str,
        signature: Signature,
        reference: Callable[..., Any],
        server: Serving,
        gradients_of: Callable[[], GradientsOf],
        gives_what_kernels_give: Callable[[], bool],
        *,
        autocast: AutocastPolicy | None,
        inline: bool,
    ) -> None:
        self.overload: OpOverload | None = None
        self.is_replaced = False
        self._name = name
        self._signature = signature
        self._reference = reference
        self._server = server
        self._serve_by_reference = server.serve_by_reference
        self._gradients_of = gradients_of
        self._gives_what_kernels_give = gives_what_kernels_give
        self._laid_out: Callable[[Any, Sequence[Any]], Any] | None = None
        self._autocast = autocast
        self._is_whole = not inline and signature.is_flat

    def register(self, outputs: int) -> None:
        """Register it at the dispatcher, unless no schema can spell its parameters."""
        if self._signature.schema is not None and not self.is_replaced:
            self.overload = register(
                self._name,
                self._signature.schema,
                outputs,
                below_autograd=self._run_below_autograd,
                with_autograd=self._run_with_autograd,
                under_autocast=self._run_under_autocast,
                reference=self._reference,
                on_replacement=self._withdraw,
            )

    def found(self, example: Callable[[], Plan]) -> OpOverload | None:
        """The operator at the dispatcher; if annotations do not say what it returns, the plan of an example does."""
        if self.overload is None and self._signature.schema is not None and not self.is_replaced:
            plan = example()
            if self.overload is None and plan.result.is_plain:
                self.register(plan.outputs)
        return self.overload

    def inline(self) -> None:
        """Let compilers and exporters see the operations of the reference from now on."""
        self._is_whole = False

    def serve_by(self, server: Serving, laid_out: Callable[[Any, Sequence[Any]], Any]) -> None:
        """Replace what serves its calls; the results for these arguments are then laid out."""
        self._server, self._laid_out = server, laid_out
        self._serve_by_reference = server.serve_by_reference

    def _withdraw(self) -> None:
        self.overload, self.is_replaced = None, True

    def serve_compiled(self, args: Sequence[Any]) -> Any:
        """Serve a call under a compiler or exporter: as one operation, or as those of the reference."""
        if self.overload is not None and self._is_whole and not _are_spread(args):
            return self._call(*args)
        if self._autocast is not None and is_autocast():
            return without_autocast(self._autocast, self._run_reference, args)
        return self._run_reference(*args)

    def _run_reference(self, *args: Any) -> Any:
        # Not from `_server`: the compiler of PyTorch 2.11 takes an object with `__get__` for one of the class.
        return self._serve_by_reference(args)

    def _call(self, *args: Any) -> Any:
        assert self.overload is not None
        positional, by_keyword = self._signature.split(args)
        return self.overload(*positional, **by_keyword)

    def _run_with_autograd(self, *args: Any, **kwargs: Any) -> Any:
        given = self._signature.bind(args, kwargs)
        is_exported = is_compiling_or_exporting()  # then `serve` would call the operator as a whole, and so this
        if is_transformed() and is_exported:
            return owned(self._run_reference(*given))
        if self._is_whole and (is_exported or is_recorded() or are_abstract(given)) and not is_transformed():
            if is_recorded() and draws(self._signature.positional(self._reference), given):
                return owned(self._run_reference(*given))
            return call_whole(self._call, self._gradients_of(), given)
        return self._own(self._server.serve(args, kwargs), args, kwargs)

    def _run_under_autocast(self, *args: Any, **kwargs: Any) -> Any:
        given = self._signature.bind(args, kwargs)
        if self._autocast is None:  # a recording mode sees the operations of the reference, and their sizes
            run = self._run_reference if is_recorded() else keeping_sizes_inside(self._run_reference)
            return owned(run(*given))
        return without_autocast(self._autocast, self._call, given)

    def _run_below_autograd(self, *args: Any, **kwargs: Any) -> Any:
        return self._own(self._server.serve_below_autograd(args, kwargs), args, kwargs)

    def _own(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Results in memory of their own, laid out as the reference does, which those of kernels are."""
        by_kernels = self._server.last_rung != "composed"
        if by_kernels and self._gives_what_kernels_give():
            return result
        if by_kernels and self._laid_out is not None:
            result = self._laid_out(result, self._signature.bind(args, kwargs))
        return owned(result)


def _are_spread(args: Sequence[Any]) -> bool:
    """Whether there are DTensors, of whose results a compiler knows nothing; by name, since it traces this too."""
    return any(type(arg).__name__ == "DTensor" for arg in args)

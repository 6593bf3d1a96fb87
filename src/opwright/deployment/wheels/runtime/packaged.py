"""An operator of a package: called like the function it came from, served by a kernel or by that function."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from opwright.binding.autograd.redraw import noting_draws
from opwright.binding.dispatcher.results import owned
from opwright.binding.environment import (
    are_abstract,
    are_plain,
    is_compiling_or_exporting,
    is_overheard,
    is_recorded,
    is_transformed,
)
from opwright.deployment.wheels.runtime.autograd import Declined, KernelNode, WholeNode
from opwright.deployment.wheels.runtime.gpus import Gpus
from opwright.deployment.wheels.runtime.gradients import gradients_by_reference
from opwright.deployment.wheels.runtime.layouts import Layouts
from opwright.deployment.wheels.runtime.unserved import Unserved
from opwright.deployment.wheels.runtime.variant import Variant
from opwright.introspection import signature_of
from opwright.tracing.interface.orders import in_order, order_of

Rung = Literal["cpp", "cuda", "composed"]
_PROCESSOR = torch.device("cpu")


class _Latest(threading.local):
    """What each thread remembers of its last call."""

    rung: Rung | None = None


class PackagedOperator:
    """An operator with kernels that were built ahead of time.

    What they were not built for runs the reference: other dtypes, ranks and devices, tensor subclasses, empty tensors,
    function transforms, autocast, another default dtype of torch. So does a backward pass that is differentiated again.

    Attributes:
        name: Its name at the dispatcher, "namespace::name".
        reference: The function as written.
        variants: Its kernels.
        overload: The operator at the dispatcher; None until it is registered.
        gradients_overload: That of its gradients; None if it has none.
    """

    def __init__(
        self,
        name: str,
        reference: Callable[..., Any],
        variants: Sequence[Variant],
        gpus: Gpus | None = None,
        default_dtype: torch.dtype = torch.float32,
    ) -> None:
        self.name = name
        self.reference = reference
        self.variants = tuple(variants)
        self._latest = _Latest()
        self.overload: Any = None
        self.gradients_overload: Any = None
        self._signature = signature_of(reference)
        parameters = self._signature.parameters.values()
        self._layouts = Layouts(self.run_reference)
        self._by_keyword = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        self._gpus = gpus
        self._default_dtype = default_dtype  # that the kernels were built under
        self._told = Unserved(name)
        self._recording = [variant for variant in self.variants if variant.backward is not None]
        # Those that keep nothing for a backward pass are asked first where there will be none.
        self._plain = sorted(self.variants, key=lambda variant: variant.backward is not None)
        functools.update_wrapper(self, reference)
        self.__module__ = reference.__module__.rpartition(".")[0]  # the package, where its name finds it again

    @property
    def last_rung(self) -> Rung | None:
        """What served the last call of this thread: "cpp", "cuda" or, for the reference, "composed"; None before."""
        return self._latest.rung

    @property
    def differentiable(self) -> tuple[int, ...]:
        """Positions of the arguments that have gradients."""
        return tuple(sorted({position for variant in self._recording for position in variant.gradients}))

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers; compilers then see what it does, as they keep track of these."""
        return any(variant.is_random for variant in self.variants)

    @property
    def tangents(self) -> tuple[int, ...]:
        """Positions of the outputs that have cotangents."""
        return self._recording[0].tangents if self._recording else ()

    def flowing(self, wanted: Sequence[bool]) -> set[int]:
        """Positions of the outputs from which gradients flow to arguments of which some are wanted."""
        return self._recording[0].flowing(wanted) if self._recording else set()

    # -- calling ---------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator; see the reference for arguments, results and errors."""
        if is_compiling_or_exporting():
            return (self.reference if self.overload is None or self.is_random else self.overload)(*args, **kwargs)
        made, self._latest.rung = self._serve(self.bind(args, kwargs))
        return made

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Order arguments by parameter and fill in defaults."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.reference.__name__}(): {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def run_reference(self, *arguments: Any) -> Any:
        """Run the function as written on arguments in order."""
        return self._call(self.reference, arguments)

    def _call(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        count = len(arguments) - len(self._by_keyword)
        return function(*arguments[:count], **dict(zip(self._by_keyword, arguments[count:], strict=True)))

    def _serve(self, arguments: Sequence[Any]) -> tuple[Any, Rung]:
        """The result of a call, and what served it."""
        device = self._device_of_kernels(arguments)
        if device is None:
            whole = self.overload is not None and are_abstract(arguments) and not is_transformed()
            return self._call(self.overload if whole else self.reference, arguments), "composed"
        wanted = _recorded(arguments)
        if not wanted:
            return self._serve_forward(arguments, device)
        fitting = [v for v in self._recording if v.device == device and wanted <= set(v.gradients)]
        try:
            made = KernelNode.apply(self, fitting, *arguments)  # type: ignore[no-untyped-call]
        except Declined:
            return self._unserved(arguments, device, calls=2), "composed"
        return made, fitting[0].rung

    def _serve_forward(self, arguments: Sequence[Any], device: str) -> tuple[Any, Rung]:
        for variant in self._plain:
            made = self.run(variant, arguments) if variant.device == device else None
            if made is not None:
                return made[0] if variant.outputs == 1 else made[: variant.outputs], variant.rung
        return self._unserved(arguments, device, calls=3), "composed"

    def _unserved(self, arguments: Sequence[Any], device: str, calls: int) -> Any:
        """Run the reference where a kernel could be expected; without any for the device, that was said before.

        Args:
            arguments: Of the call.
            device: The type of the device whose kernels could serve.
            calls: How many of this class's functions are between the user's call and this one.
        """
        if any(variant.device == device for variant in self.variants):
            self._told.tell(arguments, stacklevel=calls + 2)
        return self.run_reference(*arguments)

    def run(self, variant: Variant, arguments: Sequence[Any]) -> tuple[torch.Tensor, ...] | None:
        """What a variant makes, its results laid out as the reference would; None if it does not take the arguments."""
        made = variant.run(arguments)
        orders = () if made is None or variant.orders else self._layouts(arguments)
        if made is None or orders is None:
            return None
        return (*map(in_order, made, orders), *made[len(orders) :])

    def _device_of_kernels(self, arguments: Sequence[Any]) -> str | None:
        """The type of the device whose kernels may serve a call; None if it is the reference's.

        They take plain tensors of one device, none empty, where nobody must see the operations of the reference.
        """
        tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        if is_overheard() or is_transformed() or not are_plain(tensors):
            return None
        device = tensors[0].device if tensors else _PROCESSOR
        if any(t.device != device or t.is_nested or t.numel() == 0 for t in tensors):
            return None
        if torch.get_default_dtype() is not self._default_dtype:
            self._told.tell_default(self._default_dtype, stacklevel=4)
            return None
        if device.type == "cuda" and not (self._gpus is not None and self._gpus.serve(device.index)):
            return None
        return device.type

    # -- at the dispatcher -----------------------------------------------------------------------------------------

    def serve_with_autograd(self, *args: Any, **kwargs: Any) -> Any:
        """Serve a call at the dispatcher: as one recorded operation where a compiler or an exporter looks."""
        arguments = self.bind(args, kwargs)
        if not (is_recorded() or are_abstract(arguments)) or is_transformed():
            return self._owned(*self._serve(arguments))
        wanted = _recorded(arguments)
        if self.is_random or (wanted and self.gradients_overload is None) or not wanted <= set(self.differentiable):
            return owned(self.run_reference(*arguments))
        if not wanted:
            return self.call_whole(*arguments)
        return WholeNode.apply(self, *arguments)  # type: ignore[no-untyped-call]

    def serve_under_autocast(self, *args: Any, **kwargs: Any) -> Any:
        """Serve a call whose operations autocast has to see, in a graph of a compiler too."""
        return self._owned(self.run_reference(*self.bind(args, kwargs)), "composed")

    def serve_below_autograd(self, *args: Any, **kwargs: Any) -> Any:
        """Serve a call that records no gradients."""
        arguments = self.bind(args, kwargs)
        device = self._device_of_kernels(arguments)
        if device is not None:
            return self._owned(*self._serve_forward(arguments, device))
        return self._owned(self.run_reference(*arguments), "composed")

    def _owned(self, made: Any, rung: Rung) -> Any:
        """Results as the dispatcher is promised them: dense, in memory of their own, which kernels give anyway."""
        self._latest.rung = rung
        return owned(made) if rung == "composed" else made

    def serve_gradients(self, *given: Any) -> tuple[torch.Tensor, ...]:
        """The gradients of the arguments at `differentiable`, from arguments and cotangents."""
        arity = len(self._signature.parameters)
        arguments, cotangents = list(given[:arity]), given[arity:]
        recording = torch.is_grad_enabled() and _recorded(given)
        device = None if recording else self._device_of_kernels(given)
        for variant in self._recording:
            found = _gradients_by_kernels(variant, arguments, cotangents) if variant.device == device else None
            if found is not None:
                return self._as_arguments(found, arguments)
        by_reference = functools.partial(
            gradients_by_reference, self.run_reference, arguments, self.tangents, cotangents, self.differentiable
        )
        gradients, draw = noting_draws(by_reference)
        if draw is not None:
            raise RuntimeError(f"{self.name} draws random numbers here, and its gradients would draw others")
        return self._as_arguments(tuple(map(owned, gradients)), arguments)

    def _as_arguments(self, gradients: Sequence[torch.Tensor], arguments: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        """Gradients that lie in memory as dense tensors like their arguments do, as their fake kernel says."""
        orders = [order_of(torch.empty_like(arguments[position], device="meta")) for position in self.differentiable]
        return tuple(map(in_order, gradients, orders))

    def call_whole(self, *arguments: Any) -> Any:
        """Run the operation at the dispatcher, below autograd."""
        with torch._C._AutoDispatchBelowAutograd():
            return self._call(self.overload, arguments)

    def call_gradients(self, *arguments: Any) -> tuple[torch.Tensor, ...]:
        """Run that of its gradients."""
        found = self.gradients_overload(*arguments)
        return (found,) if isinstance(found, torch.Tensor) else tuple(found)

    def __get__(self, instance: object, owner: type | None = None) -> PackagedOperator:
        """Stay as it is in a class, as functions of torch do; with this method, `help` shows a signature."""
        return self

    def __reduce__(self) -> str:
        """It is copied and pickled as a function is: by its name."""
        return self.__qualname__  # type: ignore[no-any-return, attr-defined]  # set by update_wrapper

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


def _recorded(arguments: Sequence[Any]) -> set[int]:
    """Positions of the arguments whose gradients are recorded."""
    if not torch.is_grad_enabled():
        return set()
    return {p for p, a in enumerate(arguments) if isinstance(a, torch.Tensor) and a.requires_grad}


def _gradients_by_kernels(
    variant: Variant, arguments: Sequence[Any], cotangents: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, ...] | None:
    """Run the forward kernel again for what the backward kernel reads, then that one."""
    if variant.is_random:
        return None
    made = variant.run(arguments)
    if made is None:
        return None
    shapes = [tuple(a.shape) if isinstance(a, torch.Tensor) else () for a in arguments]
    return variant.run_backward(arguments, [made[position] for position in variant.kept], cotangents, shapes)

"""Passes that are kernels: the launcher between torch and functions over pointers and sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.errors import NoKernel
from opwright.handwritten.expected import Described, Expected, Tensors
from opwright.handwritten.kernels.geometry import Geometry
from opwright.handwritten.kernels.kernel import HandwrittenKernel
from opwright.handwritten.kernels.layout import Layout, empty, laid_out
from opwright.handwritten.kernels.roles import GRADIENT, Contract
from opwright.handwritten.kernels.zones import Zones
from opwright.handwritten.passes import Made, Recorded
from opwright.handwritten.sources import Sources

# Cheaper than the name of a tensor's device.
_IS_THERE: Mapping[str, Callable[[torch.Tensor], bool]] = {
    "cpu": operator.attrgetter("is_cpu"),
    "cuda": operator.attrgetter("is_cuda"),
}


@dataclass(frozen=True, slots=True)
class Manner:
    """How kernels are called.

    Attributes:
        device: The type of the device that they run on.
        layouts: Layouts of tensors by name, if not contiguous.
        saved: For each saved name, a function of the arguments that returns a tensor of its sizes and dtype.
        guarded: Whether results are allocated between guard zones.
        geometry: How CUDA kernels are launched.
    """

    device: str
    layouts: Mapping[str, Layout]
    saved: Mapping[str, Callable[..., torch.Tensor]]
    guarded: bool
    geometry: Geometry

    def layout(self, contract: Contract, name: str) -> Layout:
        """The layout of a tensor."""
        return self.layouts.get(name, "any" if name in contract.strided else "contiguous")


class KernelPasses:
    """A forward kernel, and a backward kernel if the author wrote one.

    Args:
        arguments: The names of the operator's arguments.
        expected: What the reference returns.
        forward: The kernel.
        backward: The backward kernel, if there is one.
        manner: How they are called.
        sources: The sources that define them.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        expected: Expected,
        forward: HandwrittenKernel,
        backward: HandwrittenKernel | None,
        manner: Manner,
        sources: Sources,
    ) -> None:
        self._sources = sources
        self._arguments = arguments
        self._expected = expected
        self._forward = forward
        self._backward = backward
        self._manner = manner
        writes = forward.contract.writes
        self._results = writes[: len(writes) - len(manner.saved)]
        self._kept = [name for name in writes if backward and name in backward.contract.tensors]
        contracts = [kernel.contract for kernel in (forward, backward) if kernel]
        self._layouts = {
            contract.function: {name: manner.layout(contract, name) for name in contract.tensors}
            for contract in contracts
        }
        self._places = {GRADIENT + name: position for position, name in enumerate(arguments)}
        written = backward.contract.writes if backward else ()
        self._differentiated = {GRADIENT + name: name for name in arguments if GRADIENT + name in written}
        self._given_by_backward = frozenset(self._places[name] for name in self._differentiated)
        self._cotangents = {
            GRADIENT + name: backward and GRADIENT + name in backward.contract.reads for name in self._results
        }
        self._saved_like: dict[Any, dict[str, Described]] = {}

    def forward(self, args: Sequence[Any], expected: Tensors, *, recording: bool) -> Made:
        """Run the forward kernel; see `Passes`."""
        tensors, constants = self._given(args)
        results = dict(zip(self._results, expected.described, strict=True))
        if self._manner.saved:
            results |= self._saved(args)
        written = self._run(self._forward, args, tensors, constants, results, _device(tensors), expected.count)
        kept = tuple([written[name] for name in self._kept]) if recording else ()
        return Made(tuple([written[name] for name in self._results]), kept)

    def backward(self, recorded: Recorded) -> Mapping[int, torch.Tensor | None]:
        """Run the backward kernel; see `Passes`."""
        if self._backward is None or not self._is_for(recorded):
            return {}
        tensors, constants = self._given(recorded.args)
        device = _device(tensors)
        tensors |= dict(zip(self._kept, recorded.kept, strict=True))
        for name, gradient, (sizes, dtype) in zip(self._cotangents, recorded.cotangents, recorded.outputs, strict=True):
            flows = gradient is not None
            tensors[name] = gradient if flows else torch.zeros(sizes, dtype=dtype, device=device)
        gradients: dict[str, Described] = {}
        for name, argument in self._differentiated.items():
            of = tensors[argument]
            if of is None:  # the kernel would have to write a gradient for an argument that is None
                return {}
            gradients[name] = (of.shape, of.dtype)
        count = math.prod(recorded.outputs[0][0])
        written = self._run(self._backward, recorded.args, tensors, constants, gradients, device, count)
        return {self._places[name]: gradient for name, gradient in written.items()}

    def examine(self) -> None:
        """Raise an OpwrightError if a kernel cannot be built."""
        for kernel in (self._forward, self._backward):
            if kernel is not None:
                kernel.examine()

    def count(self) -> int:
        """How many instances are loaded."""
        return self._forward.count + (self._backward.count if self._backward else 0)

    def source(self) -> str:
        """The author's files, followed by the functions that call them."""
        entries = [kernel.entry for kernel in (self._forward, self._backward) if kernel is not None]
        return "\n".join([self._sources.shown(), *entries])

    def _is_for(self, recorded: Recorded) -> bool:
        """Whether the backward kernel computes a wanted gradient, and has every cotangent that it reads."""
        if self._given_by_backward.isdisjoint(recorded.wanted):
            return False
        for is_read, gradient in zip(self._cotangents.values(), recorded.cotangents, strict=True):
            if gradient is not None and not is_read:
                return False
        return True

    def _given(self, args: Sequence[Any]) -> tuple[dict[str, torch.Tensor | None], dict[str, Any]]:
        """Tensors and constants by name; an omitted optional tensor is in both."""
        tensors: dict[str, torch.Tensor | None] = {}
        constants: dict[str, Any] = {}
        is_there = _IS_THERE[self._manner.device]
        for name, value in zip(self._arguments, args, strict=True):
            if isinstance(value, torch.Tensor):
                if not is_there(value) or value.layout is not torch.strided:
                    what = f"a {value.layout} tensor on {value.device.type}"
                    function = self._forward.contract.function
                    raise NoKernel(
                        f"'{name}' is {what}, but {function} runs on {self._manner.device}",
                        hint=f"pass a dense tensor on {self._manner.device}",
                    )
                tensors[name] = value
            else:
                constants[name] = value
                if value is None:
                    tensors[name] = None
        return tensors, constants

    def _run(
        self,
        kernel: HandwrittenKernel,
        args: Sequence[Any],
        tensors: Mapping[str, torch.Tensor | None],
        constants: Mapping[str, Any],
        results: Mapping[str, Described],
        device: torch.device,
        count: int,
    ) -> dict[str, torch.Tensor]:
        """Copy tensors to the requested layouts, allocate results, and run a kernel."""
        contract, manner = kernel.contract, self._manner
        layouts = self._layouts[contract.function]
        zones = Zones() if manner.guarded else None
        make = empty if zones is None else zones.empty
        written = {name: make(sizes, dtype, device, layouts[name]) for name, (sizes, dtype) in results.items()}
        known: dict[str, torch.Tensor | None] = dict(written)
        for name, tensor in tensors.items():
            if name in layouts:
                known[name] = tensor if tensor is None else laid_out(tensor, layouts[name])
        grid = manner.geometry.grid(args, count) if contract.is_cuda_kernel else None
        kernel(known, constants, count, grid, device)
        if zones is not None:
            zones.check(written, contract.function, contract.place)
        return written

    def _saved(self, args: Sequence[Any]) -> dict[str, Described]:
        """Sizes and dtypes of saved tensors, cached like those of the results."""
        key = tuple((arg.shape, arg.dtype) if isinstance(arg, torch.Tensor) else repr(arg) for arg in args)
        if key not in self._saved_like:
            made = {name: self._expected.fake(like, args) for name, like in self._manner.saved.items()}
            self._saved_like[key] = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in made.items()}
        return self._saved_like[key]


def _device(tensors: Mapping[str, torch.Tensor | None]) -> torch.device:
    for tensor in tensors.values():
        if tensor is not None:
            return tensor.device
    raise NoKernel("there is no tensor among its arguments", hint="pass at least one tensor")

"""Trace: run a reference once on fake tensors and keep what it did as a Graph."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from opwright.errors import Place, UnsupportedReturn, UntraceableReference
from opwright.tracing.graph import Graph, GraphInput
from opwright.tracing.isolation import in_fresh_thread
from opwright.tracing.lean_torch import fake_mode, without_compiler
from opwright.tracing.recorder import Recorder
from opwright.tracing.signature import place_of
from opwright.tracing.sizes import SizeTable
from opwright.tracing.specs import ArgumentSpec, ConstantSpec

_DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)


class Session:
    """One trace under way: fake inputs come in, nodes are recorded, a Graph comes out."""

    def __init__(self) -> None:
        self._mode, environment = fake_mode()
        self._sizes = SizeTable(environment)
        self._recorder = Recorder(self._sizes)
        self._inputs: list[GraphInput] = []
        self._names: dict[Node, str] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record every operation until the end of the block."""
        with self._mode, self._recorder:
            yield

    def argument(self, spec: ArgumentSpec) -> Any:
        """Make the argument that stands for `spec`."""
        if isinstance(spec, ConstantSpec):
            return spec.value
        with self._mode:
            shape = self._sizes.new_shape(spec.name, spec.sizes)
            tensor = torch.empty(shape, dtype=spec.dtype, requires_grad=spec.requires_grad)
        return self._declare(spec.name, tensor)

    def tangent(self, name: str, output: torch.Tensor) -> torch.Tensor:
        """Make the incoming gradient of an output."""
        with self._mode:
            tensor = torch.empty(output.shape, dtype=output.dtype)
        return self._declare(name, tensor)

    def _declare(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        self._inputs.append(GraphInput(name, self._recorder.placeholder(name, tensor)))
        self._names[self._inputs[-1].node] = name
        return tensor

    def call(self, reference: Callable[..., Any], arguments: Sequence[Any]) -> tuple[tuple[torch.Tensor, ...], bool]:
        """Run the reference; return its outputs, and whether it returned one bare tensor.

        Raises:
            UntraceableReference: If its control flow or a shape depends on data.
            UnsupportedReturn: If it returns something other than tensors.
        """
        try:
            with self.recording(), self._recorder.watching(), _locals_of(reference) as variables:
                returned = reference(*arguments)
        except _DATA_DEPENDENT as error:
            raise UntraceableReference(
                f"{reference.__name__} looks at the values of a tensor to decide what to do next",
                place=_where(reference, error),
                hint="choose with torch.where, or keep this part outside of the operator",
            ) from error
        outputs = _flatten(reference, returned)
        for name, value in variables.items():
            if isinstance(value, (tuple, list)):
                for position, member in enumerate(value):
                    self._name(f"{name}_{position}", member)
            self._name(name, value)
        return outputs, isinstance(returned, torch.Tensor)

    def _name(self, name: str, value: object) -> None:
        if isinstance(value, torch.Tensor) and self._recorder.has(value):
            self._names.setdefault(self._recorder.node_of(value), name)

    def node(self, tensor: torch.Tensor) -> Node:
        """The node that computes a tensor."""
        return self._recorder.node_of(tensor)

    def graph(self, outputs: Sequence[torch.Tensor]) -> Graph:
        """Close the trace."""
        return Graph(
            fx=self._recorder.fx,
            inputs=tuple(self._inputs),
            outputs=tuple(self.node(output) for output in outputs),
            sizes=self._sizes,
            guards=self._sizes.guards(),
            names=self._names,
            hides_from_autograd=self._recorder.hides_from_autograd,
            is_random=self._recorder.is_random,
            needs_row_major=self._recorder.needs_row_major,
        )


def _flatten(reference: Callable[..., Any], returned: Any) -> tuple[torch.Tensor, ...]:
    outputs = returned if isinstance(returned, tuple) else (returned,)
    for position, output in enumerate(outputs):
        if isinstance(output, torch.Tensor):
            continue
        what = f"{type(output).__name__}" + (f" at position {position}" if len(outputs) > 1 else "")
        raise UnsupportedReturn(
            f"{reference.__name__} returns a {what}",
            place=place_of(reference),
            hint="return a torch.Tensor or a tuple of tensors",
        )
    if not outputs:
        raise UnsupportedReturn(f"{reference.__name__} returns nothing", place=place_of(reference))
    return outputs


@contextmanager
def _locals_of(reference: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """Catch the local variables of `reference` when it returns: their names make generated code readable."""
    code = getattr(inspect.unwrap(reference), "__code__", None)
    caught: dict[str, Any] = {}

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is code:
            caught.update(frame.f_locals)

    previous = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield caught
    finally:
        sys.setprofile(previous)


def _where(reference: Callable[..., Any], error: BaseException) -> Place:
    """The deepest line of the reference's own file that an error passed through."""
    home = place_of(reference)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == home.file]
    return Place(home.file, (lines[-1] if lines else None) or home.line)


def trace(reference: Callable[..., Any], specs: Sequence[ArgumentSpec]) -> tuple[Graph, bool]:
    """Trace a reference without derivatives.

    Args:
        reference: The function as written.
        specs: One per parameter.

    Returns:
        Its Graph, and whether it returns one bare tensor instead of a tuple.

    Raises:
        UntraceableReference: If its control flow or a shape depends on data.
        NoKernel: If it does something no kernel can stand for.
    """

    def work() -> tuple[Graph, bool]:
        session = Session()
        outputs, bare = session.call(reference, [session.argument(spec) for spec in specs])
        return session.graph(outputs), bare

    return in_fresh_thread(lambda: without_compiler(work))

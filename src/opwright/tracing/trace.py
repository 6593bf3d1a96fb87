"""Trace: run a reference once on fake tensors and keep what it did as a Graph."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from opwright.errors import NoKernel, OpwrightError, Place, UndeclaredMutation, UntraceableReference
from opwright.tracing.decompositions.composed import ComposedUnderTransforms
from opwright.tracing.effects.gradient_mode import SwitchesOn
from opwright.tracing.effects.owners import UNWATCHED
from opwright.tracing.effects.watch import unchanged_outside
from opwright.tracing.graph import Graph, GraphInput
from opwright.tracing.interface.aliases import AS_TRACED, MAY_COPY, refuse_views
from opwright.tracing.interface.maybe_views import may_be_views
from opwright.tracing.interface.results import Result, read_result
from opwright.tracing.interface.signature import place_of
from opwright.tracing.interface.specs import ArgumentSpec, ConstantSpec, NumberSpec, TensorSpec
from opwright.tracing.outside.unasked import is_a, members_of
from opwright.tracing.raising import raising
from opwright.tracing.recording.local_variables import LocalVariables
from opwright.tracing.recording.questions import Listener
from opwright.tracing.recording.recorder import Recorder
from opwright.tracing.recording.regrouping import guard_regrouping
from opwright.tracing.recording.values import Digests
from opwright.tracing.scalars.mathematics import computing_with_numbers
from opwright.tracing.scalars.posing import posing_as_plain
from opwright.tracing.scalars.rounding import rounding_each_step
from opwright.tracing.scalars.sizes import SizeTable
from opwright.tracing.scalars.text import telling_text
from opwright.tracing.torch_hooks.fake_mode import fake_mode, with_more_formulas_if_needed
from opwright.tracing.torch_hooks.has_torch_function import asked_as_in_calls
from opwright.tracing.torch_hooks.isolation import Modes, in_fresh_thread
from opwright.tracing.torch_hooks.on_gpu import on_gpu

_DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)


class Session:
    """One trace: takes fake inputs, records nodes, returns a Graph.

    Attributes:
        asks_for_identity: Whether the function asks whether two tensors are one.
        switches_gradients_on: Whether the function has gradients recorded of its own accord.
    """

    def __init__(self) -> None:
        self._mode, environment = fake_mode()
        self._sizes = SizeTable(environment)
        self._recorder = Recorder(self._sizes)
        self._inputs: list[GraphInput] = []
        self._names: dict[Node, str] = {}
        self._variables: list[tuple[str, torch.Tensor]] = []
        self._given: dict[int, TensorSpec] = {}  # given values of what the reference computes, by input
        self._raising: tuple[Node, ...] = ()
        self._copies: list[bool] = []
        self._on_gpu = False
        self._is_conditioned = self._is_permuted = False
        self.asks_for_identity = self.switches_gradients_on = False

    @property
    def draws(self) -> int:
        """How many operations have drawn random numbers."""
        return len(self._recorder.draws)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record every operation until the end of the block."""
        with self._mode, self._recorder:
            yield

    def argument(self, spec: ArgumentSpec) -> Any:
        """Make the argument that stands for `spec`."""
        if isinstance(spec, ConstantSpec):
            return spec.value
        if isinstance(spec, TensorSpec) and spec.digest:
            self._given[len(self._inputs) + len(self._given)] = spec
            return None  # the reference does not read it; its node is found after the run
        if isinstance(spec, NumberSpec):
            with self._mode:
                tensor = self._declare(spec.name, torch.empty((), dtype=spec.dtype))
            return self._recorder.numbers.symbol(spec.name, spec.value, tensor)
        self._on_gpu |= spec.device == "cuda"
        self._is_permuted |= bool(spec.order)
        with self._mode:
            return self._declare(spec.name, self._empty(spec))

    def _empty(self, spec: TensorSpec) -> torch.Tensor:
        shape = self._sizes.new_shape(spec.name, spec.sizes, is_static=spec.is_static)
        return torch.empty(shape, dtype=spec.dtype, requires_grad=spec.requires_grad)

    def tangent(self, name: str, output: torch.Tensor) -> torch.Tensor:
        """Make the cotangent of an output."""
        with self._mode:
            tensor = torch.empty(output.shape, dtype=output.dtype)
        return self._declare(name, tensor)

    def _declare(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        self._inputs.append(GraphInput(name, self._recorder.placeholder(name, tensor)))
        self._names[self._inputs[-1].node] = name
        return tensor

    def call(self, reference: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Result, tuple[torch.Tensor, ...]]:
        """Run the reference; give the structure of what it returns, and the tensors in it that it computed.

        Raises:
            UntraceableReference: If its control flow, a shape or a number depends on data.
            NoKernel: If it returns something other than tensors and constants, or tensors that share memory.
        """
        variables = LocalVariables(reference)
        try:
            self._recorder.may_assume = not self._on_gpu  # where a failed check would end the process
            listening = Listener(reference.__name__, variables)
            pretence = on_gpu(reference.__name__) if self._on_gpu else nullcontext()
            texts, posing = telling_text(self._recorder.numbers), posing_as_plain(self._recorder.numbers)
            exactly = rounding_each_step(self._recorder.numbers)
            mathematics = computing_with_numbers(self._recorder.numbers)
            unchanged = unchanged_outside(reference.__name__, reference, arguments)
            composed, switching = ComposedUnderTransforms(), SwitchesOn()
            with (
                self.recording(),
                self._recorder.watching(),
                texts,
                posing,
                exactly,
                mathematics,
                asked_as_in_calls(),
                composed,
                switching,
                listening,
                pretence,
                unchanged as watch,
            ):
                returned = reference(*arguments)
            if (as_traced := getattr(reference, AS_TRACED, None)) is not None:
                returned = as_traced(returned, arguments, self._is_copy)
            self.switches_gradients_on |= switching.is_so
            self._recorder.lent.ensure_same()
            self.asks_for_identity |= watch.asks_for_identity
            changes_what_is_shared = not listening.shared.isdisjoint(self._recorder.written)
            self._recorder.needs_row_major |= watch.asks_for_layout or changes_what_is_shared
            may_copy = hasattr(reference, MAY_COPY)
            result, outputs = read_result(reference.__name__, returned, () if may_copy else arguments)
            for output in outputs:
                self._recorder.lent.refuse(output)
            if not may_copy:
                refuse_views(outputs, arguments, self.node)
                nodes = [self.node(output) for output in outputs]
                self._raising = raising(self._recorder.fx.nodes, nodes)
                self._recorder.needs_row_major |= may_be_views(nodes)
        except OpwrightError as refusal:
            raise refusal.again(place_in(reference, refusal)) from refusal
        except _DATA_DEPENDENT as error:
            raise UntraceableReference(
                f"{reference.__name__} looks at the values of a tensor to decide what to do next",
                place=place_in(reference, error),
                hint="choose with torch.where, compute without .item(), or keep this part outside of the operator",
            ) from error
        except RuntimeError as error:
            if "leaf Variable that requires grad" not in str(error):
                raise
            raise UndeclaredMutation(
                f"{reference.__name__} changes an argument that mutates= does not name",
                place=place_in(reference, error),
                hint="name it in mutates= of the decorator, or change a copy",
            ) from error
        finally:
            found = variables.taken()
        self._use_given(outputs)
        for name, value in found.items():
            if is_a(value, (tuple, list)):
                for position, member in enumerate(members_of(value)):
                    self._name(f"{name}_{position}", member)
            self._name(name, value)
        return result, outputs

    def _is_copy(self, tensor: Any, of: Any) -> bool:
        """Whether a tensor is still what a copy of another one gave."""
        node, copied = (self.node(each) if self._recorder.has(each) else None for each in (tensor, of))
        clones = node is not None and node.target is torch.ops.aten.clone.default and node.args[0] is copied
        self._copies.append(clones)
        return clones

    def _use_given(self, outputs: Sequence[torch.Tensor]) -> None:
        """Read given values instead of computing them; one that the reference does not compute is unused."""
        if not self._given:
            return
        digests, returned = Digests(), {self.node(output) for output in outputs}
        computed = {digests.of(node): node for node in self._recorder.fx.nodes if node not in returned}
        for place, spec in self._given.items():
            node = computed.get(spec.digest)
            given = self._recorder.give(spec.name, node) if node else self._unused(spec)
            self._inputs.insert(place, GraphInput(spec.name, given))
        self._given.clear()

    def _unused(self, spec: TensorSpec) -> Node:
        with self._mode:
            return self._recorder.placeholder(spec.name, self._empty(spec))

    def _name(self, name: str, value: Any) -> None:
        if is_a(value, torch.Tensor) and self._recorder.has(value):
            self._names.setdefault(self._recorder.node_of(value), name)
            self._variables.append((name, value))

    @contextmanager
    def naming_cotangents(self) -> Iterator[None]:
        """Name the cotangents of the reference's variables until the end of the block: that of `mean` is grad_mean."""
        computed = [(name, value) for name, value in self._variables if value.grad_fn is not None]
        hooks = [value.register_hook(functools.partial(self._describe, f"grad_{name}")) for name, value in computed]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _describe(self, name: str, value: torch.Tensor) -> None:
        if self._recorder.has(value):
            self._recorder.described.names[self._recorder.node_of(value)] = name

    def node(self, tensor: torch.Tensor) -> Node:
        """The node that computes a tensor."""
        return self._recorder.node_of(tensor)

    def holds(self) -> torch.Tensor:
        """Compute whether the trace is valid for the numbers of a call: a truth value without dimensions."""
        self._is_conditioned = True
        with self.recording():
            conditions = list(self._recorder.numbers.conditions())
            return functools.reduce(torch.logical_and, conditions or [torch.full((), True)])

    def graph(self, outputs: Sequence[torch.Tensor]) -> Graph:
        """Close the trace."""
        if self._is_permuted:
            guard_regrouping(self._recorder.fx)
        return Graph(
            fx=self._recorder.fx,
            inputs=tuple(self._inputs),
            outputs=tuple(self.node(output) for output in outputs),
            sizes=self._sizes,
            guards=self._sizes.guards(),
            names=self._names,
            described=self._recorder.described.names,
            hides_from_autograd=self._recorder.hides_from_autograd,
            raising=self._raising,
            number_guards=() if self._is_conditioned else self._recorder.numbers.guards(),
            operations=tuple(self._recorder.operations),
            draws=self._recorder.draws,
            copies=tuple(self._copies),
            needs_row_major=self._recorder.needs_row_major,
            needs_whole_memory=self._recorder.needs_whole_memory,
            asks_for_identity=self.asks_for_identity,
        )


def place_in(reference: Callable[..., Any], error: BaseException) -> Place:
    """The deepest line of code that is not torch's or ours that an error passed through: a library's, if it called."""
    passed = traceback.extract_tb(error.__traceback__)
    found = [Place(each.filename, each.lineno) for each in passed if each.lineno and not _is_torchs(each.filename)]
    return found[-1] if found else place_of(reference)


def _is_torchs(file: str) -> bool:
    return file.startswith((*UNWATCHED, "<frozen "))


def trace(reference: Callable[..., Any], specs: Sequence[ArgumentSpec]) -> tuple[Graph, Result]:
    """Trace a reference without derivatives, under the torch modes of this thread.

    Args:
        reference: The function as written.
        specs: One per parameter.

    Returns:
        Its Graph, and the structure of what it returns.

    Raises:
        UntraceableReference: If its control flow, a shape or a number depends on data.
        NoKernel: If it does something that no kernel can do.
    """

    def work() -> tuple[Graph, Result]:
        session = Session()
        result, outputs = session.call(reference, [session.argument(spec) for spec in specs])
        if any(output.requires_grad for output in outputs) and not any(map(requires_grad, specs)):
            raise requires_of_its_own()
        is_written = not hasattr(reference, MAY_COPY)  # and not derived; those give cotangents as they got them
        if session.switches_gradients_on and is_written and not any(map(requires_grad, specs)):
            return replace(session.graph(outputs), records_unasked=_records_unasked(reference, specs)), result
        return session.graph(outputs), result

    return in_fresh_thread(lambda: with_more_formulas_if_needed(work), Modes.of_caller())


def _records_unasked(reference: Callable[..., Any], specs: Sequence[ArgumentSpec]) -> bool:
    """Whether results require gradients although a call records none, because the reference switches them on."""
    recorded = [_requiring_grad(spec) for spec in specs]
    with torch.no_grad():
        session = Session()
        _, outputs = session.call(reference, [session.argument(spec) for spec in recorded])
    return any(output.requires_grad for output in outputs)


def _requiring_grad(spec: ArgumentSpec) -> ArgumentSpec:
    if isinstance(spec, TensorSpec) and (spec.dtype.is_floating_point or spec.dtype.is_complex):
        return replace(spec, requires_grad=True)
    return spec


def requires_of_its_own() -> NoKernel:
    """The refusal of results that require gradients which no argument of the call requires."""
    fact = "the function makes a tensor that requires a gradient, as a module's parameter does"
    return NoKernel(fact, hint="make it outside of the operator")


def requires_grad(spec: ArgumentSpec) -> bool:
    """Whether an argument is a tensor that gets a gradient."""
    return isinstance(spec, TensorSpec) and spec.requires_grad


def trace_conditioned(reference: Callable[..., Any], specs: Sequence[ArgumentSpec]) -> tuple[Graph, Result]:
    """Trace a reference for numbers of which a kernel tests the assumptions: the last output of the Graph.

    That is a truth value without dimensions. If it is false, the other outputs mean nothing. Other guards on numbers
    are none, so a number may take part in any arithmetic that Python can do without an error.

    Args:
        reference: The function as written.
        specs: One per parameter.

    Raises:
        UntraceableReference, NoKernel: As `trace`; NumberNeeded if a value of a computed number decides.
    """

    def work() -> tuple[Graph, Result]:
        session = Session()
        result, outputs = session.call(reference, [session.argument(spec) for spec in specs])
        return session.graph((*outputs, session.holds())), result

    return in_fresh_thread(lambda: with_more_formulas_if_needed(work), Modes.of_caller())

"""The structure of an operator: its Program before passes, which tells how results depend on the axes of arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.fx import Node

from opwright.binding.transforms.family import Identity
from opwright.binding.variants.states import Outside, State
from opwright.ir.program import Buffer, Program, targets_of
from opwright.tracing.guarded import guarded
from opwright.tracing.interface.results import Result
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from opwright.tracing.interface.specs import ArgumentSpec

if TYPE_CHECKING:
    from opwright.tracing.graph import Graph  # imports sympy


@dataclass(frozen=True, slots=True)
class Structure:
    """What is read off a reference for one kind of arguments.

    Attributes:
        program: Its Program before passes, whose inputs are called as the arguments.
        graph: Its Graph, of which the Program is made.
        nodes: The nodes of the Graph by the buffers that they are computed into.
        result: What it returns.
        is_random: Whether it draws random numbers.
    """

    program: Program
    graph: Graph
    nodes: Mapping[str, Node]
    result: Result
    is_random: bool

    @property
    def targets(self) -> tuple[Buffer, ...]:
        """The buffers that its steps write."""
        return tuple(target for step in self.program.steps for target in targets_of(step))


def structure_of(reference: Callable[..., Any], specs: Sequence[ArgumentSpec], name: str) -> Structure:
    """Trace and lower a reference, without gradients.

    Raises:
        UntraceableReference: If control flow or a shape depends on data.
        NoKernel: If it does something that kernels cannot do.
    """
    from opwright.lowering.lower import Lowering  # all of these import sympy (0.3 s), which calls by kernels need not
    from opwright.operators.names import named_inputs, named_outputs
    from opwright.tracing.trace import trace

    graph, result = trace(reference, specs)
    inputs = {node: name for name, node in named_inputs(graph)}
    none: frozenset[Any] = frozenset()
    lowering = Lowering(graph, name, inputs, named_outputs(graph), graph.guards, True, none, none, {})
    program = lowering.program()
    nodes = {buffer.name: node for node, buffer in reversed(lowering.buffers.items())}
    return Structure(program, graph, nodes, result, graph.is_random)


class HasStructure:
    """The part of an operator that tells how its results depend on the axes of its arguments."""

    _positional: Callable[..., Any]
    _names: Sequence[str]
    _outside: Outside
    _identity: Identity
    _make_relative: Callable[..., Any]
    name: str

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The names of its arguments, laid out flat."""
        return tuple(self._names)

    @property
    def flat_reference(self) -> Callable[..., Any]:
        """The reference, of arguments in order."""
        return self._positional

    def outside_now(self) -> Any:
        """What stands for everything that the function reads outside of its arguments now."""
        return self._outside.now()

    def structure(self, specs: Sequence[ArgumentSpec]) -> Structure:
        """Its structure for one kind of flat arguments; errors as of `structure_of`."""
        found: Structure = self._outside.now().tracing(
            self._positional, lambda reference: guarded(reference, lambda: structure_of(reference, specs, "whole"))
        )
        return found

    def part(self, function: Callable[..., Any], name: str, parameters: Sequence[str], key: str) -> Any:
        """An operator of a part of the function, which takes tensors and returns a tuple of them.

        Args:
            function: The part, read off the structure for the current state.
            name: What the part is called.
            parameters: The names of its arguments.
            key: Tells its records from those of other parts.
        """
        signature = Signature(tuple(Parameter(one, Kind.TENSOR, False) for one in parameters), None)

        def identity(state: State) -> str | None:
            mine = self._identity(state)
            return mine and f"{mine} {key}"

        return self._make_relative(function, name=f"{self.name}_{name}", signature=signature, identity=identity)

    def serve_sharded(self, args: Sequence[Any]) -> Any:
        """Serve a call with tensors that are spread over processes; NotImplemented if there are none, or no rules."""
        del args
        return NotImplemented

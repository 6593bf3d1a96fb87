"""The structure of an operator: its Program before passes, which tells how results depend on the axes of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opwright.binding.variants.states import Outside
from opwright.ir.program import Program
from opwright.tracing.guarded import guarded
from opwright.tracing.interface.results import Result
from opwright.tracing.interface.specs import ArgumentSpec


@dataclass(frozen=True, slots=True)
class Structure:
    """What is read off a reference for one kind of arguments.

    Attributes:
        program: Its Program before passes, whose inputs are called as the arguments.
        result: What it returns.
        is_random: Whether it draws random numbers.
    """

    program: Program
    result: Result
    is_random: bool


def structure_of(reference: Callable[..., Any], specs: Sequence[ArgumentSpec], name: str) -> Structure:
    """Trace and lower a reference, without gradients.

    Raises:
        UntraceableReference: If control flow or a shape depends on data.
        NoKernel: If it does something that kernels cannot do.
    """
    from opwright.lowering.lower import lower  # all of these import sympy (0.3 s), which calls by kernels need not
    from opwright.operators.names import named_inputs, named_outputs
    from opwright.tracing.trace import trace

    graph, result = trace(reference, specs)
    program = lower(graph, name, named_inputs(graph), named_outputs(graph), graph.guards)
    return Structure(program, result, graph.is_random)


class HasStructure:
    """The part of an operator that tells how its results depend on the axes of its arguments."""

    _positional: Callable[..., Any]
    _names: Sequence[str]
    _outside: Outside

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

    def serve_sharded(self, args: Sequence[Any]) -> Any:
        """Serve a call with tensors that are spread over processes; NotImplemented if there are none, or no rules."""
        del args
        return NotImplemented

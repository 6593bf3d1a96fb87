"""Updates: functions of tensors and numbers whose results replace their arguments, as Programs and their sources.

Numbers are given at run time, whatever is computed of them: the kernel itself tests what the trace assumed of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from opwright.codegen.cpp.table.each import UpdatedEach, emit_each
from opwright.codegen.cpp.table.emit import TableSource, emit_table
from opwright.codegen.cpp.table.writer import Updated
from opwright.codegen.cuda.table import emit_cuda_table
from opwright.codegen.cuda.table_each import emit_cuda_each
from opwright.codegen.formula import formula_comment
from opwright.codegen.header import Origin, built_header
from opwright.derivation.rounding import rounded_in_registers
from opwright.errors import NoKernel
from opwright.ir.program import Program
from opwright.lowering.lower import lower
from opwright.operators.names import named_inputs
from opwright.operators.refusals import refuse_here
from opwright.passes.buffers.numbers_apart import numbers_apart
from opwright.passes.order import optimize
from opwright.toolchain.source import Source
from opwright.tracing.guarded import guarded
from opwright.tracing.interface.results import Given, Made
from opwright.tracing.interface.specs import ArgumentSpec, NumberSpec
from opwright.tracing.trace import trace_conditioned

_COPY = "return a copy of it: `.clone()`"


@dataclass(frozen=True, slots=True)
class Update:
    """An update as a Program.

    Attributes:
        lowered: As it was lowered. Its last output says whether the others are valid for the numbers.
        numbers: The names of its inputs that are numbers.
        replaced: For each output but the last, the argument that it replaces.
    """

    lowered: Program
    numbers: tuple[str, ...]
    replaced: tuple[str, ...]


def derive_update(
    reference: Callable[..., Any], specs: Sequence[ArgumentSpec], results: Sequence[str], name: str
) -> Update:
    """Trace an update, lower it and optimize it.

    Args:
        reference: Returns a tuple of tensors, or of None.
        specs: One for each parameter.
        results: For each result, the parameter that it replaces.
        name: What the Program is called.

    Raises:
        UntraceableReference: If control flow or a shape depends on data.
        NoKernel: If it does something that kernels cannot do.
    """
    return guarded(reference, lambda: _derived(reference, specs, results, name))


def _derived(reference: Callable[..., Any], specs: Sequence[ArgumentSpec], results: Sequence[str], name: str) -> Update:
    graph, result = trace_conditioned(reference, specs)
    refuse_here(graph, specs)
    if graph.is_random:
        raise NoKernel("it draws random numbers", hint="draw them outside of the update, and keep them as a state")
    made: dict[int, str] = {}
    for member, replaced in zip(result.members, results, strict=True):
        match member:
            case Given(position) if specs[position].name != replaced:
                raise NoKernel(f"it returns its argument '{specs[position].name}' in another place", hint=_COPY)
            case Made(position) if position in made:
                raise NoKernel(f"it returns one tensor as '{made[position]}' and as '{replaced}'", hint=_COPY)
            case Made(position):
                made[position] = replaced
    outputs = [(f"new_{made[p]}" if p in made else "holds", node) for p, node in enumerate(graph.outputs)]
    rounded = rounded_in_registers(graph)
    program = lower(graph, name, named_inputs(graph), outputs, graph.guards, rounded=rounded)
    numbers = tuple(spec.name for spec in specs if isinstance(spec, NumberSpec))
    return Update(program, numbers, tuple(made[position] for position in range(len(made))))


def table_source(update: Update, step: str, origin: Origin | None, *, whole: bool = True) -> TableSource:
    """The update of many tensors by one function.

    Args:
        update: The update.
        step: The number that counts the steps of a tensor.
        origin: Where it is defined.
        whole: Whether kernels see whole tensors, and not parts of them.

    Raises:
        NotElementwise: If it is no update element by element.
    """
    header = built_header(update.lowered.name, origin, "cpp")
    return emit_table(_updated(update, step, whole), formulas=formula_comment, header=header)


def cuda_table_source(
    update: Update, step: str, origin: Origin | None, *, whole: bool = True, distant: Sequence[str] = ()
) -> tuple[Source, Updated]:
    """The same for tensors on a GPU, with what its table has.

    Args:
        update: The update.
        step: The number that counts the steps of a tensor.
        origin: Where it is defined.
        whole: Whether kernels see whole tensors, and not parts of them.
        distant: Its arguments without dimensions that are on the GPU.
    """
    updated = replace(_updated(update, step, whole), distant=tuple(distant))
    header = built_header(update.lowered.name, origin, "cuda")
    emitted = emit_cuda_table(updated, formulas=formula_comment, header=header)
    return Source(emitted.name, emitted.host, emitted.device), updated


def _updated(update: Update, step: str, whole: bool) -> Updated:
    numbers = tuple(name for name in update.numbers if name != step)
    return Updated(optimize(update.lowered, "cpp"), numbers, step, update.replaced, whole)


def each_source(update: Update, step: str, scalars: Collection[str], origin: Origin | None) -> TableSource:
    """The update of many tensors by one function, which runs kernels for each of them, whatever these do.

    Args:
        update: The update.
        step: The number that counts the steps of a tensor.
        scalars: The states without dimensions that the processor keeps.
        origin: Where it is defined.

    Raises:
        NoKernel: If it does something that kernels cannot do.
    """
    header = built_header(update.lowered.name, origin, "cpp")
    return emit_each(_updated_each(update, step, scalars, "cpp"), formulas=formula_comment, header=header)


def cuda_each_source(
    update: Update, step: str, scalars: Collection[str], origin: Origin | None
) -> tuple[Source, UpdatedEach]:
    """The same for tensors on a GPU, with what its table has."""
    updated = _updated_each(update, step, scalars, "cuda")
    header = built_header(update.lowered.name, origin, "cuda")
    emitted = emit_cuda_each(updated, formulas=formula_comment, header=header)
    return Source(emitted.name, emitted.host, emitted.device), updated


def _updated_each(update: Update, step: str, scalars: Collection[str], backend: Literal["cpp", "cuda"]) -> UpdatedEach:
    *results, valid = update.lowered.outputs
    tensors = [result for result, name in zip(results, update.replaced, strict=True) if name not in scalars]
    apart = numbers_apart(update.lowered, {*update.numbers, *scalars}, tensors)
    if backend == "cuda" and any(name in apart.rest.outputs for name in {*results} - {*tensors}):
        raise NoKernel(
            "a state that the processor keeps as a number is computed of a tensor, for which it would wait",
            hint="let its first value be a tensor with a dimension, such as param.new_zeros(1)",
        )
    row = tuple(name for name in update.numbers if name != step)
    numbers, rest = optimize(apart.numbers, "cpp"), optimize(apart.rest, backend)
    return UpdatedEach(numbers, rest, row, step, tuple(zip(results, update.replaced, strict=True)), valid)

"""What is saved between forward and backward, and how much memory it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from opwright.binding.variants.variant import Saved
from opwright.explain.layout import wrapped
from opwright.ir.expressions.integer import evaluate
from opwright.ir.program import Buffer, buffers_of
from opwright.operators.stages import Derivation
from opwright.report.figures import in_units
from opwright.tracing.graph import described
from opwright.tracing.interface.specs import TensorSpec


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor that is kept for the backward pass: its name, its dtype and shape, its bytes, and what else it is."""

    name: str
    shape: str
    size_bytes: int
    role: Literal["argument", "output", "intermediate"]
    remark: str = ""


_ROLES = {"argument": "an argument", "output": "an output", "intermediate": "an intermediate, written by forward"}


def saved_lines(derivation: Derivation) -> list[str]:
    """List what is saved, with its bytes for the sample and the bytes of arguments and outputs."""
    saved, (given, made) = saved_tensors(derivation), argument_and_output_bytes(derivation)
    total = sum(tensor.size_bytes for tensor in saved)
    return [
        *_table([(each.name, each.shape, each.size_bytes, _ROLES[each.role] + each.remark) for each in saved]),
        f"together {in_units(total)}; the arguments are {in_units(given)}, the outputs {in_units(made)}",
        *_budget_lines(derivation),
    ]


def saved_tensors(derivation: Derivation) -> list[SavedTensor]:
    """What is kept for the backward pass: arguments, then outputs, then intermediates."""
    plan, program = derivation.plan, derivation.forward
    buffers = buffers_of(program)

    def kept(buffer: Buffer, role: Literal["output", "intermediate"]) -> SavedTensor:
        return SavedTensor(buffer.name, _shape(derivation, buffer), _size(derivation, buffer), role)

    arguments = [
        SavedTensor(spec.name, shape_of(spec), _argument_size(spec), "argument", _reason(plan.saved, position))
        for position, spec in enumerate(derivation.specs)
        if isinstance(spec, TensorSpec) and position in plan.saved.contributing
    ]
    outputs = [kept(buffers[program.outputs[position]], "output") for position in plan.saved.outputs]
    return [*arguments, *outputs, *(kept(buffers[name], "intermediate") for name in program.outputs[plan.outputs :])]


def argument_and_output_bytes(derivation: Derivation) -> tuple[int, int]:
    """The bytes of all arguments, and of all outputs."""
    buffers = buffers_of(derivation.forward)
    outputs = [_size(derivation, buffers[name]) for name in derivation.forward.outputs[: derivation.plan.outputs]]
    arguments = [_argument_size(spec) for spec in derivation.specs if isinstance(spec, TensorSpec)]
    return sum(arguments), sum(outputs)


def _budget_lines(derivation: Derivation) -> list[str]:
    """What a budget allows at these sizes, and what it costs."""
    graph, budget = derivation.graph, derivation.budget
    if budget is None:
        return []
    kept, auto, most = map(in_units, (budget.kept_bytes, budget.auto_bytes, budget.most_bytes))
    lines = [f'beside the arguments {kept} of the {auto} that save="auto" keeps; the budget is {most} for these sizes']
    if budget.dropped:
        names = ", ".join(f"{described(graph, node)} ({in_units(size_bytes)})" for node, size_bytes in budget.dropped)
        lines.append(f"not kept: {names}; backward computes it again, in {budget.work:,.0f} operations")
    if budget.kept_bytes > budget.most_bytes:
        lines.append("more than the budget, as random numbers cannot be drawn again")
    return [line for text in lines for line in wrapped(text)]


def _reason(saved: Saved, position: int) -> str:
    return "" if position in saved.arguments else ", kept for derivatives of the gradients"


def shape_of(spec: TensorSpec) -> str:
    """Write dtype and shape: "float32[16, 384]"."""
    return f"{str(spec.dtype).removeprefix('torch.')}{list(spec.sizes)}"


def _table(rows: Sequence[tuple[str, str, int, str]]) -> list[str]:
    cells = [(name, shape, in_units(size_bytes), what) for name, shape, size_bytes, what in rows]
    widths = [max((len(row[column]) for row in cells), default=0) for column in range(3)]
    return [f"{n:<{widths[0]}}  {s:<{widths[1]}}  {b:>{widths[2]}}  {what}" for n, s, b, what in cells]


def _argument_size(spec: TensorSpec) -> int:
    return prod(spec.sizes) * spec.dtype.itemsize


def _sizes(derivation: Derivation, buffer: Buffer) -> list[int]:
    return [evaluate(size, derivation.graph.sizes.hints) for size in buffer.shape]


def _size(derivation: Derivation, buffer: Buffer) -> int:
    return prod(_sizes(derivation, buffer)) * buffer.dtype.bytes


def _shape(derivation: Derivation, buffer: Buffer) -> str:
    return f"{buffer.dtype.value}{_sizes(derivation, buffer)}"

"""What is saved between forward and backward, and how much memory it takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from opwright.binding.variants.variant import Saved
from opwright.explain.layout import wrapped
from opwright.ir.expressions.integer import evaluate
from opwright.ir.program import Buffer, buffers_of
from opwright.operators.stages import Derivation
from opwright.report.figures import in_units
from opwright.tracing.graph import described
from opwright.tracing.interface.specs import TensorSpec


def saved_lines(derivation: Derivation) -> list[str]:
    """List what is saved, with its bytes for the sample and the bytes of arguments and outputs."""
    plan, program = derivation.plan, derivation.forward
    buffers = buffers_of(program)
    arguments = [spec for spec in derivation.specs if isinstance(spec, TensorSpec)]
    outputs = [_size(derivation, buffers[name]) for name in program.outputs[: plan.outputs]]
    intermediates = [buffers[name] for name in program.outputs[plan.outputs :]]
    rows = [
        (spec.name, shape_of(spec), _argument_size(spec), "an argument" + _reason(plan.saved, position))
        for position, spec in enumerate(derivation.specs)
        if isinstance(spec, TensorSpec) and position in plan.saved.contributing
    ]
    rows += [
        (buffer.name, _shape(derivation, buffer), _size(derivation, buffer), "an output")
        for buffer in (buffers[program.outputs[position]] for position in plan.saved.outputs)
    ]
    rows += [
        (buffer.name, _shape(derivation, buffer), _size(derivation, buffer), "an intermediate, written by forward")
        for buffer in intermediates
    ]
    total, given, made = sum(row[2] for row in rows), sum(map(_argument_size, arguments)), sum(outputs)
    return [
        *_table(rows),
        f"together {in_units(total)}; the arguments are {in_units(given)}, the outputs {in_units(made)}",
        *_budget_lines(derivation),
    ]


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

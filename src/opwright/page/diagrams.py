"""Programs as graphs to draw: inputs, steps and outputs, with an arrow for each value that is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from opwright.codegen.formula import step_formulas
from opwright.drawing.graph import Box, Diagram, Kind
from opwright.ir.contents import reads_of, statements
from opwright.ir.expressions.expression import Apply, Cast, nodes
from opwright.ir.program import (
    Binding,
    Call,
    Check,
    Iota,
    Kernel,
    Number,
    Program,
    Reduce,
    Step,
    Store,
    View,
    targets_of,
)

_LONGEST = 26


def diagram_of(program: Program) -> Diagram:
    """The graph of a Program.

    A step is one box; a buffer that several steps write has an arrow from each of them. Inputs that no step reads are
    left out, unless they are outputs.
    """
    boxes: list[Box] = []
    arrows: dict[tuple[str, str], None] = {}
    writers: dict[str, list[str]] = {}
    read = {name for step in program.steps for name in reads_of(step)} | set(program.outputs)
    for buffer in program.inputs:
        if buffer.name in read:
            boxes.append(Box(f"input {buffer.name}", (buffer.name,), "input", f"an input: {buffer.dtype.value}"))
            writers[buffer.name] = [f"input {buffer.name}"]
    for number, step in enumerate(program.steps):
        key = f"step {number}"
        boxes.append(Box(key, *_shown(step)))
        for name in dict.fromkeys(reads_of(step)):
            arrows |= {(writer, key): None for writer in writers.get(name, ()) if writer != key}
        for name in _written(step):
            writers.setdefault(name, []).append(key)
    for name in dict.fromkeys(program.outputs):
        boxes.append(Box(f"output {name}", (name,), "output", "a result"))
        arrows |= {(writer, f"output {name}"): None for writer in writers.get(name, ())}
    return Diagram(tuple(boxes), tuple(arrows))


def operations_in(kernel: Kernel) -> int:
    """How many scalar operations it does at one point."""
    values = [*(let.value for let in kernel.lets), *(store.value for store in kernel.stores)]
    return sum(isinstance(node, Apply | Cast) for value in values for node in nodes(value))


def described_work(kernel: Kernel) -> str:
    """The number of its operations in words."""
    operations = operations_in(kernel)
    if not operations and any(_reduces(each) for each in statements(kernel)):
        return "a reduction"
    return {0: "a copy", 1: "one operation"}.get(operations, f"{operations} operations, fused")


def _reduces(statement: Binding | Store) -> bool:
    return isinstance(statement, Reduce) or (isinstance(statement, Store) and statement.reduction is not None)


def _written(step: Step) -> list[str]:
    if isinstance(step, Kernel):
        return list(dict.fromkeys(store.buffer for store in step.stores))
    return [target.name for target in targets_of(step)]


def _shown(step: Step) -> tuple[tuple[str, ...], Kind, str]:
    formulas = step_formulas(step)
    tip = "\n".join(formulas)
    match step:
        case Kernel():
            return _kernel_lines(step, formulas), "kernel", tip
        case Call():
            names = [target.name for target in step.targets[:1]]  # an assertion makes nothing
            return (*names, step.function.rpartition("::")[2].strip("_")), "library", tip
        case View():
            return (_short(formulas, step.target.name), "view"), "view", tip
        case Number() | Iota():
            return (_short(formulas, step.target.name),), "number", tip
        case Check():
            return ("check", _short(formulas, step.buffer)), "number", tip
        case _:
            assert_never(step)


def _kernel_lines(kernel: Kernel, formulas: Sequence[str]) -> tuple[str, ...]:
    if operations_in(kernel) <= 1 and len(formulas) == 1:
        return (_short(formulas, kernel.name),)
    return (kernel.name, described_work(kernel))


def _short(formulas: Sequence[str], name: str) -> str:
    return formulas[0] if len(formulas) == 1 and len(formulas[0]) <= _LONGEST else name

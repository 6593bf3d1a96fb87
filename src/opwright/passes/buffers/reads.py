"""Which buffers a step reads, and how often each is read."""

from __future__ import annotations

from collections import Counter
from typing import assert_never

from opwright.ir.expressions.expression import Load, leaves
from opwright.ir.program import Call, Check, Kernel, Number, Program, Range, Step, View, operand_buffers


def reads_of(step: Step) -> list[str]:
    """The buffers a step reads, once for each place that reads them."""
    match step:
        case Kernel(lets=lets, stores=stores):
            values = [let.value for let in lets] + [store.value for store in stores]
            return [leaf.buffer for value in values for leaf in leaves(value) if isinstance(leaf, Load)]
        case View(source=source):
            return [source]
        case Number() | Range():
            return []
        case Call(operands=operands):
            return [name for operand in operands for name in operand_buffers(operand)]
        case Check(buffer):
            return [buffer]
        case _:
            assert_never(step)


def count_reads(program: Program) -> Counter[str]:
    """How often each buffer is read; being an output counts as once."""
    counts = Counter(program.outputs)
    for step in program.steps:
        counts.update(reads_of(step))
    return counts

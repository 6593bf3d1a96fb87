"""Accumulate at indices in place, where the memory was made for that alone."""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.contents import count_reads
from opwright.ir.program import Call, Kernel, Program, Step, TensorOperand

_OPERATIONS = frozenset(f"aten::{name}" for name in ("index_put", "put", "scatter_add", "scatter"))


def accumulate_in_place(program: Program) -> Program:
    """Update in place what a kernel wrote for this operation alone, instead of a copy.

    Before: kernel zeros[i0, i1] = 0;  call grad = aten::index_put(zeros, [ids], rows, True)
    After:  kernel zeros[i0, i1] = 0;  call grad = aten::index_put_(zeros, [ids], rows, True)

    This is the gradient of an embedding table, which is far larger than the rows that were read.
    """
    reads = count_reads(program)
    written = {target.name for step in program.steps if isinstance(step, Kernel) for target in step.targets}
    own = {name for name in written if reads[name] == 1}
    return replace(program, steps=tuple(_in_place(step, own) for step in program.steps))


def _in_place(step: Step, own: set[str]) -> Step:
    if not isinstance(step, Call) or step.function not in _OPERATIONS:
        return step
    match step.operands[0]:
        case TensorOperand(buffer) if buffer in own:
            return replace(step, function=f"{step.function}_")
        case _:
            return step

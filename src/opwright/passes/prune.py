"""Remove what nothing uses (dead code)."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from opwright.ir.expression import Expression, Load, Local, children
from opwright.ir.program import Call, Kernel, Let, Number, Program, Step, View, operand_buffers, targets_of
from opwright.passes.rewrite import map_kernels


def prune(program: Program) -> Program:
    """Remove steps whose buffers nobody reads, and lets that nothing uses.

    Before: kernel a[i0] = exp(x[i0]); kernel y[i0] = x[i0] * 2     (output y)
    After:  kernel y[i0] = x[i0] * 2
    """
    program = map_kernels(program, _prune_lets)
    needed = set(program.outputs)
    kept: list[Step] = []
    for step in reversed(program.steps):
        if not _writes(step) & needed:
            continue
        kept.append(step)
        needed |= _reads(step)
    return replace(program, steps=tuple(reversed(kept)))


def _prune_lets(kernel: Kernel) -> Kernel:
    used: set[str] = set()
    for store in kernel.stores:
        used |= _locals(store.value)
    kept: list[Let] = []
    for let in reversed(kernel.lets):
        if let.name in used:
            kept.append(let)
            used |= _locals(let.value)
    return replace(kernel, lets=tuple(reversed(kept)))


def _locals(expression: Expression) -> set[str]:
    if isinstance(expression, Local):
        return {expression.name}
    return {name for child in children(expression) for name in _locals(child)}


def _loads(expression: Expression) -> set[str]:
    if isinstance(expression, Load):
        return {expression.buffer}
    return {name for child in children(expression) for name in _loads(child)}


def _writes(step: Step) -> set[str]:
    declared = {target.name for target in targets_of(step)}
    return declared | {store.buffer for store in step.stores} if isinstance(step, Kernel) else declared


def _reads(step: Step) -> set[str]:
    match step:
        case Kernel(lets=lets, stores=stores):
            values = [let.value for let in lets] + [store.value for store in stores]
            return {name for value in values for name in _loads(value)}
        case View(source=source):
            return {source}
        case Number():
            return set()
        case Call(operands=operands):
            return {name for operand in operands for name in operand_buffers(operand)}
        case _:
            assert_never(step)

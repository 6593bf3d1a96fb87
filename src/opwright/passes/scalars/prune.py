"""Remove what nothing uses (dead code)."""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.call_traits import has_effect
from opwright.ir.expressions.expression import Expression, Load, Local, children
from opwright.ir.expressions.integer import symbols_of
from opwright.ir.program import Binding, Call, Check, Kernel, Program, Step, targets_of
from opwright.passes.buffers.reads import reads_of


def prune(program: Program) -> Program:
    """Remove steps and stores whose buffers nobody reads, and lets that nothing uses.

    Before: kernel a[i0] = exp(x[i0]); kernel y[i0] = x[i0] * 2     (output y)
    After:  kernel y[i0] = x[i0] * 2
    """
    needed = set(program.outputs)
    kept: list[Step] = []
    for step in reversed(program.steps):
        if not (_writes(step) & needed or _has_effect(step)):
            continue
        kept.append(_prune_lets(_prune_stores(step, needed)) if isinstance(step, Kernel) else step)
        needed.update(reads_of(kept[-1]))
    return replace(program, steps=tuple(reversed(kept)))


def _prune_stores(kernel: Kernel, needed: set[str]) -> Kernel:
    targets = tuple(target for target in kernel.targets if target.name in needed)
    return replace(kernel, targets=targets, stores=tuple(s for s in kernel.stores if s.buffer in needed))


def _prune_lets(kernel: Kernel) -> Kernel:
    used: set[str] = set()
    for store in kernel.stores:
        used |= _named(store.value)
    kept: list[Binding] = []
    for let in reversed(kernel.lets):
        if let.name in used:
            kept.append(let)
            used |= _named(let.value)
    return replace(kernel, lets=tuple(reversed(kept)))


def _named(expression: Expression) -> set[str]:
    """The locals that a value is computed from, and the indices that it is loaded at."""
    match expression:
        case Local(name):
            return {name}
        case Load(indices=indices):
            return {name for index in indices for name in symbols_of(index)}
        case _:
            return {name for child in children(expression) for name in _named(child)}


def _has_effect(step: Step) -> bool:
    return isinstance(step, Check) or (isinstance(step, Call) and has_effect(step.function))


def _writes(step: Step) -> set[str]:
    declared = {target.name for target in targets_of(step)}
    return declared | {store.buffer for store in step.stores} if isinstance(step, Kernel) else declared

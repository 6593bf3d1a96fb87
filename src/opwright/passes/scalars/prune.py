"""Remove what nothing uses (dead code)."""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.call_traits import has_effect
from opwright.ir.contents import needed, reads_of
from opwright.ir.program import Call, Check, Kernel, Program, Step, targets_of


def prune(program: Program) -> Program:
    """Remove steps and stores whose buffers nobody reads, and lets that nothing uses.

    Calls that may raise stay: the user wrote them.

    Before: kernel a[i0] = exp(x[i0]); kernel y[i0] = x[i0] * 2     (output y)
    After:  kernel y[i0] = x[i0] * 2
    """
    read = set(program.outputs)
    kept: list[Step] = []
    for step in reversed(program.steps):
        if not (_writes(step) & read or _has_effect(step)):
            continue
        kept.append(_prune_kernel(step, read) if isinstance(step, Kernel) else step)
        read.update(reads_of(kept[-1]))
    return replace(program, steps=tuple(reversed(kept)))


def _prune_kernel(kernel: Kernel, read: set[str]) -> Kernel:
    targets = tuple(target for target in kernel.targets if target.name in read)
    stores = tuple(store for store in kernel.stores if store.buffer in read)
    lets = needed(kernel.lets, [store.value for store in stores])
    return replace(kernel, targets=targets, stores=stores, lets=tuple(lets))


def _has_effect(step: Step) -> bool:
    if not isinstance(step, Call):
        return isinstance(step, Check)
    return step.may_raise or has_effect(step.function)


def _writes(step: Step) -> set[str]:
    declared = {target.name for target in targets_of(step)}
    return declared | {store.buffer for store in step.stores} if isinstance(step, Kernel) else declared

"""Apply a rewrite to every scalar expression of a Program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opwright.ir.expression import Expression
from opwright.ir.program import Kernel, Program


def map_expressions(program: Program, rewrite: Callable[[Expression], Expression]) -> Program:
    """Rewrite the values of all lets and stores."""
    return map_kernels(program, lambda kernel: _rewrite_kernel(kernel, rewrite))


def map_kernels(program: Program, rewrite: Callable[[Kernel], Kernel]) -> Program:
    """Rewrite every kernel."""
    steps = tuple(rewrite(step) if isinstance(step, Kernel) else step for step in program.steps)
    return replace(program, steps=steps)


def _rewrite_kernel(kernel: Kernel, rewrite: Callable[[Expression], Expression]) -> Kernel:
    return replace(
        kernel,
        lets=tuple(replace(let, value=rewrite(let.value)) for let in kernel.lets),
        stores=tuple(replace(store, value=rewrite(store.value)) for store in kernel.stores),
    )

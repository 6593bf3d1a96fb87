"""Apply a rewrite to every scalar expression of a Program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opwright.ir.expressions.expression import Expression
from opwright.ir.program import Binding, Gather, Kernel, Program


def map_expressions(program: Program, rewrite: Callable[[Expression], Expression]) -> Program:
    """Rewrite the values of all lets and stores."""
    return map_kernels(program, lambda kernel: _rewrite_kernel(kernel, rewrite))


def map_kernels(program: Program, rewrite: Callable[[Kernel], Kernel]) -> Program:
    """Rewrite every kernel."""
    steps = tuple(rewrite(step) if isinstance(step, Kernel) else step for step in program.steps)
    return replace(program, steps=steps)


def rewrite_let(let: Binding, rewrite: Callable[[Expression], Expression]) -> Binding:
    """Rewrite the value of a let; a gathered index stays an element of a buffer."""
    if isinstance(let, Gather):
        return let
    value = rewrite(let.value)
    return let if value is let.value else replace(let, value=value)


def _rewrite_kernel(kernel: Kernel, rewrite: Callable[[Expression], Expression]) -> Kernel:
    return replace(
        kernel,
        lets=tuple(rewrite_let(let, rewrite) for let in kernel.lets),
        stores=tuple(replace(store, value=rewrite(store.value)) for store in kernel.stores),
    )

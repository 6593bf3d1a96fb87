"""Compute equal values once (common subexpressions)."""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.expressions.expression import Expression, Local, children, rewrite_children
from opwright.ir.program import Binding, Gather, Kernel, Program, Reduce
from opwright.passes.scalars.rewrite import map_kernels


def share(program: Program) -> Program:
    """Bind every value that a kernel computes twice to one name.

    Before: let a = exp(x[i0]); let b = exp(x[i0]); y[i0] = a + b
    After:  let a = exp(x[i0]); y[i0] = a + a
    """
    return map_kernels(program, _share)


def _share(kernel: Kernel) -> Kernel:
    known: dict[Expression, Local] = {}
    reductions: dict[tuple[str, Expression], Local] = {}
    renamed: dict[str, Local] = {}
    lets: list[Binding] = []

    def settle(expression: Expression) -> Expression:
        if isinstance(expression, Local):
            return renamed.get(expression.name, expression)
        settled = rewrite_children(expression, settle)
        return known.get(settled, settled)

    for let in kernel.lets:
        if isinstance(let, Gather):
            lets.append(let)
            continue
        value = settle(let.value)
        if isinstance(let, Reduce):
            local = Local(let.name, value.dtype)
            first = reductions.setdefault((let.function, value), local)
            renamed[let.name] = first
            if first is local:
                lets.append(replace(let, value=value))
            continue
        if isinstance(value, Local):
            renamed[let.name] = value
            continue
        lets.append(replace(let, value=value))
        known[value] = Local(let.name, value.dtype)
    stores = tuple(replace(store, value=settle(store.value)) for store in kernel.stores)
    return replace(kernel, lets=tuple(lets), stores=stores)


def count_uses(kernel: Kernel) -> dict[str, int]:
    """How often each local is used."""
    uses: dict[str, int] = {}

    def visit(expression: Expression) -> None:
        if isinstance(expression, Local):
            uses[expression.name] = uses.get(expression.name, 0) + 1
        for child in children(expression):
            visit(child)

    for let in kernel.lets:
        visit(let.value)
    for store in kernel.stores:
        visit(store.value)
    return uses

"""Write values that are used once where they are used, so that kernels read like formulas."""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.expressions.expression import Expression, Literal, Load, Local, children, rewrite_children
from opwright.ir.program import Binding, Gather, Kernel, Program, Reduce
from opwright.ir.rows import varying_locals
from opwright.passes.scalars.rewrite import map_kernels
from opwright.passes.scalars.share import count_uses

_LONGEST = 6  # operations in one formula, beyond which a name helps the reader


def inline(program: Program) -> Program:
    """Inline lets used once, unless the name is a variable of the reference or the formula would grow too long.

    Before: let mul = elu_g * sigmoid_i; cell[i0] = old_cell[i0] + mul
    After:  cell[i0] = old_cell[i0] + elu_g * sigmoid_i

    A load keeps its name, because kernels load everything first; so do reductions and values computed once per row.
    """
    return map_kernels(program, _inline)


def _inline(kernel: Kernel) -> Kernel:
    uses = count_uses(kernel)
    inlined: dict[str, Expression] = {}
    lets: list[Binding] = []
    varying = varying_locals(kernel) if kernel.row_axes else None

    def settle(expression: Expression) -> Expression:
        if isinstance(expression, Local):
            return inlined.get(expression.name, expression)
        return rewrite_children(expression, settle)

    for let in kernel.lets:
        if isinstance(let, Gather):
            lets.append(let)
            continue
        value = settle(let.value)
        once = uses.get(let.name, 0) == 1 and (varying is None or let.name in varying)
        if isinstance(let, Reduce):
            lets.append(replace(let, value=value))
        elif isinstance(value, Literal) or (
            once and not let.spoken and not isinstance(value, Load) and _operations(value) < _LONGEST
        ):
            inlined[let.name] = value
        else:
            lets.append(replace(let, value=value))
    stores = tuple(replace(store, value=settle(store.value)) for store in kernel.stores)
    return replace(kernel, lets=tuple(lets), stores=stores)


def _operations(expression: Expression) -> int:
    below = children(expression)
    return 1 + sum(_operations(child) for child in below) if below else 0

"""Write Programs as readable text: each step with its inputs, its outputs and its formulas."""

from __future__ import annotations

from typing import assert_never

from opwright.codegen.formula import step_formulas
from opwright.explain.layout import counted, labelled, wrapped
from opwright.ir.expressions.expression import Apply, Cast, Load, nodes
from opwright.ir.program import Call, Check, Iota, Kernel, Number, Program, Step, View


def program_lines(program: Program) -> list[str]:
    """Write the steps of a Program in order, then those of its special cases."""
    lines = [line for step in program.steps for line in _step_lines(step)]
    for case in program.cases:
        sizes = " and ".join(f"{name} = {size}" for name, size in case.sizes)
        lines += labelled("case", f"if {sizes}, these steps instead:")
        lines += [line for step in case.steps for line in _step_lines(step)]
    return lines


def _step_lines(step: Step) -> list[str]:
    formulas = step_formulas(step)
    match step:
        case Kernel():
            own = [line for formula in formulas for line in wrapped(formula, " " * 12, " " * 16)]
            return [*_kernel_lines(step), *own]
        case View():
            return [line for formula in formulas for line in labelled("view", formula)]
        case Call():
            return [line for formula in formulas for line in labelled("library", formula)]
        case Check():
            return [line for formula in formulas for line in labelled("check", formula)]
        case Number() | Iota():
            return [line for formula in formulas for line in labelled("number", formula)]
        case _:
            assert_never(step)


def _kernel_lines(kernel: Kernel) -> list[str]:
    extents = " × ".join(str(axis.extent) for axis in kernel.axes) or "one element"
    values = [*(let.value for let in kernel.lets), *(store.value for store in kernel.stores)]
    every = [node for value in values for node in nodes(value)]
    operations = sum(isinstance(node, (Apply, Cast)) for node in every)
    loads = counted(node.buffer for node in every if isinstance(node, Load))
    stores = counted(store.buffer for store in kernel.stores)
    work = {0: "a copy", 1: "one operation"}.get(operations, f"{operations} operations, fused")
    return [
        *labelled("kernel", f"{kernel.name} over {extents}: {work}"),
        *labelled("", f"reads {loads}; writes {stores}"),
    ]

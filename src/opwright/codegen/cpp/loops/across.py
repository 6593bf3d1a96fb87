"""Whether rows lie across the memory, as in softmax of a transposed tensor: they are packed several at a time."""

from __future__ import annotations

from opwright.ir import program as ir
from opwright.ir.contents import loads
from opwright.ir.expressions.integer import symbols_of


def rows_lie_across(program: ir.Program) -> bool:
    """Whether a kernel's last axis is not the last dimension of something it reads or writes, if inputs are row-major.

    A view may have any strides. A library call is taken to return a row-major tensor, which it does of such operands.
    """
    views = {step.target.name for step in program.steps if isinstance(step, ir.View)}
    for kernel in program.steps:
        if not isinstance(kernel, ir.Kernel) or not kernel.axes:
            continue
        places = [(load.buffer, load.indices) for load, _ in loads(kernel)]
        places += [(store.buffer, store.indices) for store in kernel.stores]
        along = kernel.axes[-1].name
        for buffer, indices in places:
            if buffer in views or any(along in symbols_of(index) for index in indices[:-1]):
                return True
    return False

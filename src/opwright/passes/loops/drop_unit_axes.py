"""Leave out the axes of kernels that have one element."""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.expressions.integer import ONE, ZERO
from opwright.ir.program import Axis, Kernel, Program
from opwright.ir.rows import outer_axes, row_axes
from opwright.ir.symbols import replace_symbols
from opwright.passes.scalars.rewrite import map_kernels


def drop_unit_axes(program: Program) -> Program:
    """Run kernels over the axes along which there is more than one element.

    Before: kernel y over i0, i1 (of 1):  y[i0, i1] = x[i0, i1] + b[i0]
    After:  kernel y over i0:             y[i0, 0] = x[i0, 0] + b[i0]

    Loops go along the last axis, so that a column (n, 1) is one loop of n elements, not n loops. A row keeps an axis.
    """
    return map_kernels(program, _without_unit_axes)


def _without_unit_axes(kernel: Kernel) -> Kernel:
    rows = _wide(row_axes(kernel)) or row_axes(kernel)[:1]
    axes = (*_wide(outer_axes(kernel)), *rows)
    dropped = {axis.name: ZERO for axis in kernel.axes if axis not in axes}
    return replace_symbols(replace(kernel, axes=axes, row_axes=len(rows)), dropped)


def _wide(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    return tuple(axis for axis in axes if axis.extent != ONE)

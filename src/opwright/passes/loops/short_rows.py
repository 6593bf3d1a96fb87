"""Mark the kernels whose rows are short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opwright.ir.contents import reducing_stores, statements
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.integer import integer, product, substitute
from opwright.ir.program import Kernel, Program
from opwright.ir.rows import indexed_by, row_axes
from opwright.passes.scalars.rewrite import map_kernels

_SHORTEST, _LONGEST = 9, 40  # shorter ones are written out
_WIDE = (DType.FLOAT64, DType.COMPLEX64, DType.COMPLEX128)


def short_rows(program: Program, met: Mapping[str, int]) -> Program:
    """Mark the kernels whose rows had few elements in the trace: on a processor, several are computed at once.

    Before: kernel y over i0, i1, rows of i1
    After:  kernel y over i0, i1, short rows of i1

    Args:
        program: A Program, or a case of one, after fusion.
        met: The sizes of the trace, by their symbols.
    """
    sizes = {name: integer(size) for name, size in met.items()}

    def marked(kernel: Kernel) -> Kernel:
        rows = row_axes(kernel)
        length = substitute(product(axis.extent for axis in rows), sizes).constant
        if not rows or rows == kernel.axes or length is None or not _SHORTEST <= length <= _LONGEST:
            return kernel
        along = {axis.name for axis in rows}
        is_wide = any(statement.value.dtype in _WIDE for statement in statements(kernel))
        in_columns = all(indexed_by(store.indices, along) for store in reducing_stores(kernel))
        return replace(kernel, short_rows=in_columns and not is_wide)

    return map_kernels(program, marked)

"""The order of all passes, for each backend.

an update of an optimizer ─numbers_apart→ what is computed of numbers alone, and the rest; each of these, as all others:

lowered ─specialize→ with cases for short sizes ─improving→ kernels ─short_rows→ what is explained ─finishing→ emitted
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from opwright.ir.program import Program, programs_of
from opwright.passes.buffers.accumulate_in_place import accumulate_in_place
from opwright.passes.buffers.bias_in_product import bias_in_product
from opwright.passes.buffers.indexed_loads import indexed_loads
from opwright.passes.buffers.join_padded import join_padded
from opwright.passes.buffers.narrow_products import narrow_products
from opwright.passes.buffers.pool_without_positions import pool_without_positions
from opwright.passes.buffers.return_views import return_views
from opwright.passes.loops.add_before_reducing import add_before_reducing
from opwright.passes.loops.drop_unit_axes import drop_unit_axes
from opwright.passes.loops.fuse import fuse
from opwright.passes.loops.separate_columns import separate_columns
from opwright.passes.loops.short_rows import short_rows
from opwright.passes.loops.specialize import specialize
from opwright.passes.loops.split_axes import split_axes
from opwright.passes.loops.split_where_joined import split_where_joined
from opwright.passes.loops.unroll import unroll
from opwright.passes.scalars.inline import inline
from opwright.passes.scalars.prune import prune
from opwright.passes.scalars.share import share
from opwright.passes.scalars.simplify import simplify

Passes = tuple[Callable[[Program], Program], ...]
Written = Literal["cpp", "cuda", "function"]


@dataclass(frozen=True, slots=True)
class Order:
    """The passes for one backend.

    Attributes:
        improving: What makes kernels of a lowered Program.
        finishing: Further passes for the backend; emitters run them, and formulas do not show them.
    """

    improving: Passes
    finishing: Passes = ()


_UNFUSED: Passes = (unroll, join_padded, narrow_products, add_before_reducing)
_FUSED: Passes = (fuse, simplify, share, prune, inline)
_EVERYWHERE: Passes = (*_UNFUSED, *_FUSED)
_OF_KERNELS: Passes = (bias_in_product, prune)

# CPU kernels gather. On a GPU, the check that all indices are in range would have to wait for the device; the rung
# "function" uses torch's own gather operations.
ORDERS: Mapping[Written, Order] = {
    "cpp": Order(
        (
            *(indexed_loads, accumulate_in_place, pool_without_positions, return_views, split_axes),
            *(*_UNFUSED, split_where_joined, *_FUSED, *_OF_KERNELS),
        ),
        (drop_unit_axes,),
    ),
    "cuda": Order((return_views, split_axes, *_EVERYWHERE, *_OF_KERNELS), (separate_columns, drop_unit_axes)),
    "function": Order(_EVERYWHERE),
}


def optimize(program: Program, target: Written = "function", met: Mapping[str, int] | None = None) -> Program:
    """Turn a lowered Program, and a case for short sizes, into the kernels of a backend.

    Args:
        program: As it was lowered.
        target: The backend.
        met: The sizes of the trace, by their symbols; short ones get a case.
    """
    kernels = _run(ORDERS[target].improving, specialize(program, met or {}))
    return _run((lambda part: short_rows(part, met),), kernels) if met and target == "cpp" else kernels


def finish(program: Program, target: Written) -> Program:
    """Run the backend's finishing passes, right before emission."""
    return _run(ORDERS[target].finishing, program)


def _run(passes: Passes, program: Program) -> Program:
    """Run passes, in order, on a Program and on each of its cases."""
    plain, *cases = programs_of(program)
    for improve in passes:
        plain, cases = improve(plain), [improve(case) for case in cases]
    improved = (replace(case, steps=part.steps) for case, part in zip(program.cases, cases, strict=True))
    return replace(plain, cases=tuple(improved))

"""The order of the passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opwright.ir.program import Program, programs_of
from opwright.passes.buffers.accumulate_in_place import accumulate_in_place
from opwright.passes.buffers.indexed_loads import indexed_loads
from opwright.passes.buffers.narrow_products import narrow_products
from opwright.passes.loops.fuse import fuse
from opwright.passes.loops.unroll import unroll
from opwright.passes.scalars.inline import inline
from opwright.passes.scalars.prune import prune
from opwright.passes.scalars.share import share
from opwright.passes.scalars.simplify import simplify

Passes = tuple[Callable[[Program], Program], ...]

PASSES: Passes = (unroll, narrow_products, fuse, simplify, share, prune, inline)


# Processors look elements up inside kernels. A GPU would have to be waited for to know that all indices are in range,
# and the rung "function" is written in torch's own operations.
ON_PROCESSORS: Passes = (indexed_loads, accumulate_in_place, *PASSES)


def optimize(program: Program, passes: Passes = PASSES) -> Program:
    """Run passes, in order, on a Program and on each of its cases."""
    plain, *cases = (_improve(part, passes) for part in programs_of(program))
    improved = (replace(case, steps=part.steps) for case, part in zip(program.cases, cases, strict=True))
    return replace(plain, cases=tuple(improved))


def _improve(program: Program, passes: Passes) -> Program:
    for improve in passes:
        program = improve(program)
    return program

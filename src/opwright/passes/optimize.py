"""The order of the passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opwright.ir.program import Program, programs_of
from opwright.passes.fuse import fuse
from opwright.passes.inline import inline
from opwright.passes.narrow_products import narrow_products
from opwright.passes.prune import prune
from opwright.passes.share import share
from opwright.passes.simplify import simplify
from opwright.passes.unroll import unroll

PASSES: tuple[Callable[[Program], Program], ...] = (unroll, narrow_products, fuse, simplify, share, prune, inline)


def optimize(program: Program) -> Program:
    """Run every pass, in order, on a Program and on each of its cases."""
    plain, *cases = map(_improve, programs_of(program))
    improved = (replace(case, steps=part.steps) for case, part in zip(program.cases, cases, strict=True))
    return replace(plain, cases=tuple(improved))


def _improve(program: Program) -> Program:
    for improve in PASSES:
        program = improve(program)
    return program

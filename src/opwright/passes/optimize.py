"""The order of the passes."""

from __future__ import annotations

from collections.abc import Callable

from opwright.ir.program import Program
from opwright.passes.fuse import fuse
from opwright.passes.inline import inline
from opwright.passes.narrow_products import narrow_products
from opwright.passes.prune import prune
from opwright.passes.share import share
from opwright.passes.simplify import simplify

PASSES: tuple[Callable[[Program], Program], ...] = (narrow_products, fuse, simplify, share, prune, inline)


def optimize(program: Program) -> Program:
    """Run every pass, in order."""
    for improve in PASSES:
        program = improve(program)
    return program

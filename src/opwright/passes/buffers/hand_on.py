"""Hand on cotangents that are gradients as they are."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from opwright.ir.contents import count_reads, kernels
from opwright.ir.expressions.integer import symbol
from opwright.ir.program import Kernel, Program, buffers_of, view_axes
from opwright.ir.relations.equal_sizes import EqualSizes
from opwright.passes.buffers.memory import views_of
from opwright.passes.buffers.return_views import copied


def hand_on(program: Program, cotangents: Set[str]) -> Program:
    """Return a cotangent itself, as eager's backward does, instead of a copy of it.

    Before: kernel grad_x[i0] = grad_output[i0]     (output grad_x)
    After:                                          (output grad_output)
    """
    views, buffers, reads = views_of(program), buffers_of(program), count_reads(program)
    equal = EqualSizes(program.guards)
    handed: dict[str, str] = {}
    for kernel in kernels(program):
        view = copied(kernel, views)
        if view is None or view.source not in cotangents or reads[view.target.name] != 1:
            continue
        given, made = (tuple(map(equal.spell, each.shape)) for each in (buffers[view.source], view.target))
        if given == made and view.indices == tuple(map(symbol, view_axes(len(given)))):
            handed |= {name: view.source for name in program.outputs if name == view.target.name}
    steps = [s for s in program.steps if not (isinstance(s, Kernel) and {t.name for t in s.targets} & handed.keys())]
    return replace(program, steps=tuple(steps), outputs=tuple(handed.get(name, name) for name in program.outputs))

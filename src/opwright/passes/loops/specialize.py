"""Add a case for the short sizes of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opwright.ir.expressions.integer import integer, symbols_of
from opwright.ir.program import Case, Kernel, Program
from opwright.ir.symbols import replace_symbols
from opwright.passes.loops.short_axes import innermost_axis, short_axes

_LONGEST = 4


def specialize(program: Program, met: Mapping[str, int]) -> Program:
    """Add a case for certain sizes if it lets kernels be unrolled.

    Before: kernel r over i0 < x_size_0, rows of i1 < x_size_1
    After:  the same, and case x_size_1 = 3: kernel r over i0 < x_size_0, rows of i1 < 3

    Args:
        program: An unfused Program.
        met: The sizes of the trace, by their symbols. They only decide what gets a case.
    """
    chosen: dict[str, int] = {}
    for name, size in _candidates(program, met):
        wider = chosen | {name: size}
        if len(short_axes(_with_sizes(program, wider))) > len(short_axes(_with_sizes(program, chosen))):
            chosen = wider
    if not chosen:
        return program
    return replace(program, cases=(Case(tuple(chosen.items()), _with_sizes(program, chosen).steps),))


def _with_sizes(program: Program, sizes: Mapping[str, int]) -> Program:
    return replace_symbols(program, {name: integer(size) for name, size in sizes.items()})


def _candidates(program: Program, met: Mapping[str, int]) -> list[tuple[str, int]]:
    """The short sizes that innermost axes have."""
    axes = [innermost_axis(step) for step in program.steps if isinstance(step, Kernel)]
    names = {name for axis in axes if axis for name in symbols_of(axis.extent)}
    return [(name, met[name]) for name in sorted(names) if name in met and met[name] <= _LONGEST]

"""Add a case for the short sizes of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opwright.ir.expressions.integer import ONE, integer, symbols_of
from opwright.ir.program import Case, Kernel, Program
from opwright.ir.symbols import replace_symbols
from opwright.passes.loops.short_axes import innermost_axis, short_axes

_LONGEST, _LONGEST_ROW = 4, 8


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
    """The short sizes that innermost axes have.

    They may be longer where all large kernels end in that axis and reduce along it, as softmax does: every row would
    cost a call, and a loop too short for a vector.
    """
    kernels = [(step, axis) for step in program.steps if isinstance(step, Kernel) and (axis := innermost_axis(step))]
    names = {name for _, axis in kernels for name in symbols_of(axis.extent)}
    depths = [sum(axis.extent != ONE for axis in kernel.axes) for kernel, _ in kernels]
    ends = {axis.extent for (_, axis), depth in zip(kernels, depths, strict=True) if depth == max(depths)}
    in_rows = {axis.extent for kernel, axis in kernels if kernel.row_axes == 1}
    rows = {name for extent in ends & in_rows if len(ends) == 1 for name in symbols_of(extent)}
    longest = {name: _LONGEST_ROW if name in rows else _LONGEST for name in sorted(names)}
    return [(name, met[name]) for name, most in longest.items() if name in met and met[name] <= most]

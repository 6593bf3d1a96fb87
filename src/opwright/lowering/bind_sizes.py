"""Bind size symbols: say from which input each run-time size is read.

A size symbol is named after a tensor and dimension of the trace, such as `gates_size_1`. A Program with that input
reads the size there; a backward Program without it reads the size from another input, or gets it as a number.
"""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.contents import program_symbols
from opwright.ir.expressions.integer import ONE, Condition, Integer, substitute, symbols_of
from opwright.ir.program import Buffer, Program, size_symbol
from opwright.ir.relations.relations import relations
from opwright.ir.symbols import replace_symbols


def bind_sizes(program: Program) -> Program:
    """Give every input size symbols of its own, and relate them to the trace's symbols by as few guards as possible.

    Before: input grad[gates_size_0], no input gates. After: input grad[grad_size_0], gates_size_0 renamed to it.
    """
    own = {str(size_symbol(buffer.name, d)) for buffer in program.inputs for d in range(len(buffer.shape))}
    renamed: dict[str, Integer] = {}
    for buffer in program.inputs:
        for dimension, size in enumerate(buffer.shape):
            name = _symbol_name(size)
            if name is not None and name not in own and name not in renamed:
                renamed[name] = size_symbol(buffer.name, dimension)
    guards = [
        Condition("==", size_symbol(buffer.name, dimension), substitute(size, renamed))
        for buffer in program.inputs
        for dimension, size in enumerate(buffer.shape)
        if substitute(size, renamed) != size_symbol(buffer.name, dimension)
    ]
    inputs = tuple(_with_own_sizes(buffer) for buffer in program.inputs)
    bound = replace_symbols(replace(program, guards=(*program.guards, *guards)), renamed)
    bound = replace(bound, inputs=inputs, guards=relations(bound.guards).guards)
    given = tuple(sorted(program_symbols(bound) - own))
    return replace(bound, sizes=given)


def _symbol_name(size: Integer) -> str | None:
    names = symbols_of(size)
    return next(iter(names)) if len(names) == 1 and str(size) in names else None


def _with_own_sizes(buffer: Buffer) -> Buffer:
    shape = tuple(ONE if size == ONE else size_symbol(buffer.name, d) for d, size in enumerate(buffer.shape))
    return replace(buffer, shape=shape)

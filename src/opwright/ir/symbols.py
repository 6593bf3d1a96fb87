"""Rewriting the sizes and indices of a Program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import assert_never

from opwright.ir.expressions.expression import Expression, Load, rewrite_children
from opwright.ir.expressions.integer import Condition, Integer, substitute
from opwright.ir.program import (
    Axis,
    Binding,
    Buffer,
    Call,
    Check,
    Gather,
    Iota,
    Kernel,
    ListOperand,
    Number,
    Operand,
    OptionalOperand,
    Program,
    SizeOperand,
    Step,
    View,
)

Rewrite = Callable[[Integer], Integer]


def rename_symbols(program: Program, replacements: Mapping[str, Integer]) -> Program:
    """Replace size symbols everywhere."""
    return map_integers(program, cache(lambda expression: substitute(expression, replacements)))


def map_integers(program: Program, rewrite: Rewrite) -> Program:
    """Rewrite every integer expression of a Program."""
    return replace(
        program,
        inputs=tuple(_buffer(buffer, rewrite) for buffer in program.inputs),
        steps=tuple(_step(step, rewrite) for step in program.steps),
        guards=tuple(Condition(g.relation, rewrite(g.left), rewrite(g.right)) for g in program.guards),
        cases=tuple(replace(case, steps=tuple(_step(step, rewrite) for step in case.steps)) for case in program.cases),
    )


def map_loads(expression: Expression, rewrite: Rewrite) -> Expression:
    """Rewrite the indices of every load in an expression."""
    if isinstance(expression, Load):
        return moved(expression, rewrite)
    return rewrite_children(expression, lambda child: map_loads(child, rewrite))


def moved(load: Load, rewrite: Rewrite) -> Load:
    """Rewrite the indices of a load."""
    return replace(load, indices=tuple(map(rewrite, load.indices)))


def _buffer(buffer: Buffer, rewrite: Rewrite) -> Buffer:
    return replace(buffer, shape=tuple(map(rewrite, buffer.shape)))


def _step(step: Step, rewrite: Rewrite) -> Step:
    match step:
        case Kernel():
            return replace(
                step,
                targets=tuple(_buffer(target, rewrite) for target in step.targets),
                axes=tuple(Axis(axis.name, rewrite(axis.extent)) for axis in step.axes),
                lets=tuple(map_let(let, rewrite) for let in step.lets),
                stores=tuple(
                    replace(store, indices=tuple(map(rewrite, store.indices)), value=map_loads(store.value, rewrite))
                    for store in step.stores
                ),
            )
        case View():
            return replace(step, target=_buffer(step.target, rewrite), indices=tuple(map(rewrite, step.indices)))
        case Number():
            return replace(step, value=rewrite(step.value))
        case Iota():
            return replace(step, target=_buffer(step.target, rewrite))
        case Check():
            shape, indices = tuple(map(rewrite, step.shape)), tuple(map(rewrite, step.indices))
            return replace(step, shape=shape, indices=indices, low=rewrite(step.low), high=rewrite(step.high))
        case Call():
            return replace(
                step,
                targets=tuple(_buffer(target, rewrite) for target in step.targets),
                operands=tuple(_operand(operand, rewrite) for operand in step.operands),
            )
        case _:
            assert_never(step)


def map_let(let: Binding, rewrite: Rewrite) -> Binding:
    """Rewrite the integers in what a name is bound to."""
    if isinstance(let, Gather):
        return replace(let, value=moved(let.value, rewrite), extent=rewrite(let.extent))
    return replace(let, value=map_loads(let.value, rewrite))


def _operand(operand: Operand, rewrite: Rewrite) -> Operand:
    match operand:
        case SizeOperand(value):
            return SizeOperand(rewrite(value))
        case ListOperand(items):
            return ListOperand(tuple(_operand(item, rewrite) for item in items))
        case OptionalOperand(item) if item is not None:
            return OptionalOperand(_operand(item, rewrite))
        case _:
            return operand

"""What is in a Program: its kernels, statements, loads, indices and sizes, each with where it stands."""

from __future__ import annotations

from collections.abc import Iterator

from opwright.ir.expressions.expression import Expression, Load, children
from opwright.ir.expressions.integer import Integer
from opwright.ir.program import (
    Binding,
    Call,
    Check,
    Kernel,
    ListOperand,
    Number,
    Operand,
    OptionalOperand,
    Pick,
    Program,
    Range,
    SizeOperand,
    Step,
    Store,
    View,
    operand_buffers,
    size_symbol,
    targets_of,
    view_axes,
)


def kernels(program: Program) -> list[Kernel]:
    """The kernels of a Program."""
    return [step for step in program.steps if isinstance(step, Kernel)]


def statements(kernel: Kernel) -> tuple[Binding | Store, ...]:
    """Its lets and stores, in order."""
    return (*kernel.lets, *kernel.stores)


def nodes(expression: Expression) -> Iterator[Expression]:
    """A scalar expression and all below it."""
    yield expression
    for child in children(expression):
        yield from nodes(child)


def loads(kernel: Kernel) -> Iterator[tuple[Load, Binding | Store]]:
    """Every load, and the statement it is in."""
    for statement in statements(kernel):
        for node in nodes(statement.value):
            if isinstance(node, Load):
                yield node, statement


def reads(step: Step) -> Iterator[tuple[str, Binding | Store | None]]:
    """Every buffer a step reads, and the statement that does."""
    match step:
        case Kernel():
            yield from ((load.buffer, statement) for load, statement in loads(step))
        case View():
            yield step.source, None
        case Number() | Range():
            return
        case Call():
            yield from ((name, None) for operand in step.operands for name in operand_buffers(operand))
        case Check():
            yield step.buffer, None


def accesses(program: Program) -> Iterator[tuple[Step, Binding | Store | None, str, tuple[Integer, ...]]]:
    """Everything that is indexed: the step, the statement, the buffer and the indices."""
    for step in program.steps:
        if isinstance(step, View):
            yield step, None, step.source, step.indices
        if isinstance(step, Check):
            yield step, None, step.buffer, step.indices
        if isinstance(step, Kernel):
            yield from ((step, statement, load.buffer, load.indices) for load, statement in loads(step))
            yield from ((step, store, store.buffer, store.indices) for store in step.stores)


def bound_sizes(program: Program) -> set[str]:
    """The size symbols that have a value at each call."""
    own = {str(size_symbol(buffer.name, d)) for buffer in program.inputs for d in range(len(buffer.shape))}
    return own | set(program.sizes)


def axes_of(step: Step) -> set[str]:
    """What its indices may name beside sizes: axes, and indices that are picked."""
    match step:
        case Kernel():
            return {axis.name for axis in step.axes} | {let.name for let in step.lets if isinstance(let, Pick)}
        case View():
            return set(view_axes(len(step.target.shape)))
        case Check():
            return set(view_axes(len(step.shape)))
        case Number() | Range() | Call():
            return set()


def sizes_in(step: Step) -> Iterator[Integer]:
    """The integer expressions of a step that are no indices."""
    for target in targets_of(step):
        yield from target.shape
    if isinstance(step, Kernel):
        yield from (axis.extent for axis in step.axes)
        yield from (let.extent for let in step.lets if isinstance(let, Pick))
    if isinstance(step, Number):
        yield step.value
    if isinstance(step, Check):
        yield from (*step.shape, step.low, step.high)
    if isinstance(step, Call):
        for operand in step.operands:
            yield from _operand_sizes(operand)


def _operand_sizes(operand: Operand) -> Iterator[Integer]:
    match operand:
        case SizeOperand(value):
            yield value
        case ListOperand(items):
            for item in items:
                yield from _operand_sizes(item)
        case OptionalOperand(item) if item is not None:
            yield from _operand_sizes(item)

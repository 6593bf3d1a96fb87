"""What is in a Program: its kernels, statements, reads, indices and sizes, each with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from opwright.ir.expressions.expression import Expression, Load, Local, children, leaves
from opwright.ir.expressions.integer import Integer, symbols_of
from opwright.ir.program import (
    Binding,
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
    Store,
    View,
    operand_buffers,
    programs_of,
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
        case Number() | Iota():
            return
        case Call():
            yield from ((name, None) for operand in step.operands for name in operand_buffers(operand))
        case Check():
            yield step.buffer, None


def reads_of(step: Step) -> list[str]:
    """The buffers a step reads, once for each place that reads them."""
    return [name for name, _ in reads(step)]


def count_reads(program: Program) -> Counter[str]:
    """How often each buffer is read; being an output counts as once."""
    return Counter([*program.outputs, *(name for step in program.steps for name in reads_of(step))])


def locals_in(*values: Expression) -> list[Local]:
    """The locals that values are computed from, once for each place."""
    return [leaf for value in values for leaf in leaves(value) if isinstance(leaf, Local)]


def needed(lets: Sequence[Binding], values: Iterable[Expression], known: Collection[str] = ()) -> list[Binding]:
    """The lets that values are computed from, in order; the search stops at what is `known`."""
    wanted = _names_in(values)
    kept: list[Binding] = []
    for let in reversed(lets):
        if let.name in wanted and let.name not in known:
            kept.append(let)
            wanted |= _names_in([let.value])
    return kept[::-1]


def _names_in(values: Iterable[Expression]) -> set[str]:
    """The locals that values are computed from, and the indices that they are loaded at."""
    below = [leaf for value in values for leaf in leaves(value)]
    gathered = {
        name for leaf in below if isinstance(leaf, Load) for index in leaf.indices for name in symbols_of(index)
    }
    return gathered | {leaf.name for leaf in below if isinstance(leaf, Local)}


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


def program_symbols(program: Program) -> set[str]:
    """All size symbols in use."""
    found = {name for buffer in program.inputs for size in buffer.shape for name in symbols_of(size)}
    found |= {name for guard in program.guards for name in (*symbols_of(guard.left), *symbols_of(guard.right))}
    for part in programs_of(program):
        for step in part.steps:
            found |= {name for size in sizes_in(step) for name in symbols_of(size)} - axes_of(step)
        for step, _, _, indices in accesses(part):
            found |= {name for index in indices for name in symbols_of(index)} - axes_of(step)
    return found


def axes_of(step: Step) -> set[str]:
    """The names that its indices may use besides sizes: axes and gathered indices."""
    match step:
        case Kernel():
            return {axis.name for axis in step.axes} | {let.name for let in step.lets if isinstance(let, Gather)}
        case View():
            return set(view_axes(len(step.target.shape)))
        case Check():
            return set(view_axes(len(step.shape)))
        case Number() | Iota() | Call():
            return set()


def sizes_in(step: Step) -> Iterator[Integer]:
    """The integer expressions of a step that are not indices."""
    for target in targets_of(step):
        yield from target.shape
    if isinstance(step, Kernel):
        yield from (axis.extent for axis in step.axes)
        yield from (let.extent for let in step.lets if isinstance(let, Gather))
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

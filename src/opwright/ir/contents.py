"""What is in a Program: its kernels, statements, reads, indices and sizes, each with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from opwright.ir import program as ir
from opwright.ir.expressions.expression import Expression, Load, Local, leaves, nodes
from opwright.ir.expressions.integer import Integer, symbols_of
from opwright.ir.parts import parts_of


def kernels(program: ir.Program) -> list[ir.Kernel]:
    """The kernels of a Program."""
    return [step for step in program.steps if isinstance(step, ir.Kernel)]


def statements(kernel: ir.Kernel) -> tuple[ir.Binding | ir.Store, ...]:
    """Its lets and stores, in order."""
    return (*kernel.lets, *kernel.stores)


def reducing_stores(kernel: ir.Kernel) -> list[ir.Store]:
    """Those that reduce the values that go to one element."""
    return [store for store in kernel.stores if store.reduction is not None]


def loads(kernel: ir.Kernel) -> Iterator[tuple[Load, ir.Binding | ir.Store]]:
    """Every load, and the statement it is in."""
    for statement in statements(kernel):
        for node in nodes(statement.value):
            if isinstance(node, Load):
                yield node, statement


def reads(step: ir.Step) -> Iterator[tuple[str, ir.Binding | ir.Store | None]]:
    """Every buffer a step reads, and the statement that does."""
    match step:
        case ir.Kernel():
            yield from ((load.buffer, statement) for load, statement in loads(step))
        case ir.View():
            yield step.source, None
        case ir.Number() | ir.Iota():
            return
        case ir.Call():
            yield from ((operand.buffer, None) for operand in parts_of(step.operands, ir.TensorOperand))
        case ir.Check():
            yield step.buffer, None


def reads_of(step: ir.Step) -> list[str]:
    """The buffers a step reads, once for each place that reads them."""
    return [name for name, _ in reads(step)]


def count_reads(program: ir.Program) -> Counter[str]:
    """How often each buffer is read; being an output counts as once."""
    return Counter([*program.outputs, *(name for step in program.steps for name in reads_of(step))])


def locals_in(*values: Expression) -> list[Local]:
    """The locals that values are computed from, once for each place."""
    return [leaf for value in values for leaf in leaves(value) if isinstance(leaf, Local)]


def needed(lets: Sequence[ir.Binding], values: Iterable[Expression], known: Collection[str] = ()) -> list[ir.Binding]:
    """The lets that values are computed from, in order; the search stops at what is `known`."""
    wanted = _names_in(values)
    kept: list[ir.Binding] = []
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


def accesses(program: ir.Program) -> Iterator[tuple[ir.Step, ir.Binding | ir.Store | None, str, tuple[Integer, ...]]]:
    """Everything that is indexed: the step, the statement, the buffer and the indices."""
    for step in program.steps:
        if isinstance(step, ir.View):
            yield step, None, step.source, step.indices
        if isinstance(step, ir.Check):
            yield step, None, step.buffer, step.indices
        if isinstance(step, ir.Kernel):
            yield from ((step, statement, load.buffer, load.indices) for load, statement in loads(step))
            yield from ((step, store, store.buffer, store.indices) for store in step.stores)


def bound_sizes(program: ir.Program) -> set[str]:
    """The size symbols that have a value at each call."""
    own = {str(ir.size_symbol(buffer.name, d)) for buffer in program.inputs for d in range(len(buffer.shape))}
    return own | set(program.sizes)


def program_symbols(program: ir.Program) -> set[str]:
    """All size symbols in use."""
    steps = (step for part in ir.programs_of(program) for step in part.steps)
    return _symbols_in((program.inputs, program.guards)).union(*(_symbols_in(step) - axes_of(step) for step in steps))


def _symbols_in(part: object) -> set[str]:
    return {name for integer in parts_of(part, Integer) for name in symbols_of(integer)}


def axes_of(step: ir.Step) -> set[str]:
    """The names that its indices may use besides sizes: axes and gathered indices."""
    match step:
        case ir.Kernel():
            return {axis.name for axis in step.axes} | {let.name for let in step.lets if isinstance(let, ir.Gather)}
        case ir.View():
            return set(ir.view_axes(len(step.target.shape)))
        case ir.Check():
            return set(ir.view_axes(len(step.shape)))
        case ir.Number() | ir.Iota() | ir.Call():
            return set()


def sizes_in(step: ir.Step) -> Iterator[Integer]:
    """The integer expressions of a step that are not indices."""
    for target in ir.targets_of(step):
        yield from target.shape
    if isinstance(step, ir.Kernel):
        yield from (axis.extent for axis in step.axes)
        yield from (let.extent for let in step.lets if isinstance(let, ir.Gather))
    if isinstance(step, ir.Number):
        yield step.value
    if isinstance(step, ir.Check):
        yield from (*step.shape, step.low, step.high)
    if isinstance(step, ir.Call):
        yield from parts_of(step.operands, Integer)

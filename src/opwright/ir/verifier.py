"""What every Program must satisfy: a list of named checks.

A check takes a Program and returns one sentence per violation, with the line it is about. Checks are independent: each
ignores what another one reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from opwright.errors import InternalError
from opwright.ir import program as ir
from opwright.ir.contents import (
    accesses,
    axes_of,
    bound_sizes,
    kernels,
    loads,
    reads,
    reads_of,
    sizes_in,
    statements,
)
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Cast, Expression, Load, Local, nodes
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import ZERO, Integer, symbols_of
from opwright.ir.expressions.reductions import REDUCERS
from opwright.ir.printer import print_statement, print_step
from opwright.ir.rows import indexed_by, row_axes, varies, varying_locals

Rule = Callable[[ir.Program], Iterable[str]]


def verify(program: ir.Program) -> None:
    """Run every check.

    Raises:
        InternalError: If one of them finds something; the message has all findings.
    """
    findings = [
        f"{check.__name__}: {finding}"
        for part in ir.programs_of(program)
        for check in CHECKS
        for finding in check(part)
    ]
    if findings:
        raise InternalError("\n".join([f"program {program.name} is malformed", *findings]))


def buffers_are_declared_once(program: ir.Program) -> Iterator[str]:
    """No two inputs or targets share a name."""
    declared = {buffer.name for buffer in program.inputs}
    if len(declared) < len(program.inputs):
        yield "two inputs have one name"
    for step in program.steps:
        for target in ir.targets_of(step):
            if target.name in declared:
                yield _finding(f"{target.name} is declared twice", step)
            declared.add(target.name)


def buffers_are_declared_before_use(program: ir.Program) -> Iterator[str]:
    """A step reads what an input or an earlier step declares."""
    declared = {buffer.name for buffer in program.inputs}
    for step in program.steps:
        if isinstance(step, ir.Kernel):
            declared.update(target.name for target in step.targets)
        for name, statement in reads(step):
            if name not in declared:
                yield _finding(f"{name} is read before it is declared", step, statement)
        declared.update(target.name for target in ir.targets_of(step))


def stores_go_to_kernel_buffers(program: ir.Program) -> Iterator[str]:
    """A kernel stores into what it or an earlier kernel declares: never into an input, a view or a call's result."""
    writable: set[str] = set()
    for kernel in kernels(program):
        writable.update(target.name for target in kernel.targets)
        for store in kernel.stores:
            if store.buffer not in writable:
                yield _finding(f"{store.buffer} is not declared by this or an earlier kernel", kernel, store)


def targets_are_stored(program: ir.Program) -> Iterator[str]:
    """A kernel writes what it declares."""
    for kernel in kernels(program):
        stored = {store.buffer for store in kernel.stores}
        for target in kernel.targets:
            if target.name not in stored:
                yield _finding(f"{target.name} is declared and not stored", kernel)


def outputs_exist(program: ir.Program) -> Iterator[str]:
    """Every output is a declared buffer."""
    declared = ir.buffers_of(program)
    yield from (f"output {name} does not exist" for name in program.outputs if name not in declared)


def indices_match_rank(program: ir.Program) -> Iterator[str]:
    """There is one index for each dimension of the buffer that is read, written or viewed."""
    declared = ir.buffers_of(program)
    for step, statement, name, indices in accesses(program):
        if name in declared and len(indices) != len(declared[name].shape):
            rank = len(declared[name].shape)
            yield _finding(f"{name} has rank {rank} and gets {len(indices)} indices", step, statement)


def indices_are_bound(program: ir.Program) -> Iterator[str]:
    """Indices use the axes of their kernel or view, and bound sizes."""
    sizes = bound_sizes(program)
    for step, statement, _, indices in accesses(program):
        for name in _unbound(indices, sizes | axes_of(step)):
            yield _finding(f"{name} is neither an axis nor a bound size", step, statement)


def sizes_are_bound(program: ir.Program) -> Iterator[str]:
    """Shapes, extents and integers given to calls use bound sizes."""
    sizes = bound_sizes(program)
    for buffer in program.inputs:
        yield from (f"{name}, in the shape of {buffer.name}, is not bound" for name in _unbound(buffer.shape, sizes))
    for step in program.steps:
        for name in _unbound(sizes_in(step), sizes):
            yield _finding(f"{name} is not a bound size", step)


def guards_are_bound(program: ir.Program) -> Iterator[str]:
    """Guards use bound sizes."""
    sizes = bound_sizes(program)
    for guard in program.guards:
        yield from (f"{name}, in guard {guard}, is not bound" for name in _unbound((guard.left, guard.right), sizes))


def axes_are_unique(program: ir.Program) -> Iterator[str]:
    """No two axes of a kernel share a name, and none is called like a size."""
    sizes = bound_sizes(program)
    for kernel in kernels(program):
        for name, count in Counter(axis.name for axis in kernel.axes).items():
            if count > 1 or name in sizes:
                yield _finding(f"{name} names an axis and something else", kernel)


def locals_are_bound_once_before_use(program: ir.Program) -> Iterator[str]:
    """A local is bound by one earlier let of its kernel, with its dtype."""
    for kernel in kernels(program):
        bound: dict[str, DType] = {}
        for statement in statements(kernel):
            for local in nodes(statement.value):
                if isinstance(local, Local) and bound.get(local.name) is not local.dtype:
                    fact = f"{local.name} is not a {local.dtype.value} bound earlier"
                    yield _finding(fact, kernel, statement)
            if not isinstance(statement, ir.Store | ir.Gather):
                if statement.name in bound:
                    yield _finding(f"{statement.name} is bound twice", kernel, statement)
                bound[statement.name] = statement.value.dtype


def functions_follow_the_table(program: ir.Program) -> Iterator[str]:
    """Functions get as many operands as their row says, of one dtype that is not half, and give the dtype it says."""
    for kernel in kernels(program):
        for statement in statements(kernel):
            for node in nodes(statement.value):
                if isinstance(node, Apply) and (fact := _misapplied(node)):
                    yield _finding(fact, kernel, statement)


def half_is_converted_by_float32(program: ir.Program) -> Iterator[str]:
    """A half type is converted to and from float32 alone."""
    for kernel in kernels(program):
        for statement in statements(kernel):
            for node in nodes(statement.value):
                if not isinstance(node, Cast):
                    continue
                pair = (node.operand.dtype, node.dtype)
                if any(dtype.is_half for dtype in pair) and DType.FLOAT32 not in pair:
                    yield _finding(f"{pair[0].value} is converted to {pair[1].value} at once", kernel, statement)


def loads_have_the_dtype_of_their_buffer(program: ir.Program) -> Iterator[str]:
    """A load converts nothing."""
    declared = ir.buffers_of(program)
    for kernel in kernels(program):
        for load, statement in loads(kernel):
            if load.buffer in declared and declared[load.buffer].dtype is not load.dtype:
                yield _finding(f"{load.buffer} does not hold {load.dtype.value}", kernel, statement)


def stores_have_the_dtype_of_their_buffer(program: ir.Program) -> Iterator[str]:
    """A store converts nothing."""
    declared = ir.buffers_of(program)
    for kernel in kernels(program):
        for store in kernel.stores:
            if store.buffer in declared and declared[store.buffer].dtype is not store.value.dtype:
                yield _finding(f"{store.buffer} does not hold {store.value.dtype.value}", kernel, store)


def kernels_do_not_read_what_they_write(program: ir.Program) -> Iterator[str]:
    """A kernel uses its own results through locals only: its points are unordered."""
    sources = {step.target.name: step.source for step in program.steps if isinstance(step, ir.View)}
    for kernel in kernels(program):
        written = {store.buffer for store in kernel.stores}
        for load, statement in loads(kernel):
            if written & _seen_through(load.buffer, sources):
                yield _finding(f"{load.buffer} is read where it is written", kernel, statement)


def reductions_follow_the_table(program: ir.Program) -> Iterator[str]:
    """A reduction is in the table and has a row to run over; `any` and `all` reduce truth values."""
    for kernel in kernels(program):
        for statement in statements(kernel):
            function = statement.function if isinstance(statement, ir.Reduce) else getattr(statement, "reduction", None)
            if function is None:
                continue
            if function not in REDUCERS:
                yield _finding(f"{function} is not in the table of reductions", kernel, statement)
            elif (function in ("any", "all")) != (statement.value.dtype is DType.BOOL):
                yield _finding(f"{function} of {statement.value.dtype.value}", kernel, statement)
            if isinstance(statement, ir.Reduce) and not 0 < kernel.row_axes <= len(kernel.axes):
                yield _finding("there is no row to reduce", kernel, statement)


def what_is_stored_once_is_one_value(program: ir.Program) -> Iterator[str]:
    """A store without row axes in its indices gets a value that is the same for the whole row."""
    for kernel in kernels(program):
        axes, varying = {axis.name for axis in row_axes(kernel)}, varying_locals(kernel)
        for store in kernel.stores:
            if (
                axes
                and store.reduction is None
                and not indexed_by(store.indices, axes)
                and varies(store.value, axes, varying)
            ):
                yield _finding("every point of a row would write there", kernel, store)


def indices_are_gathered_before_use(program: ir.Program) -> Iterator[str]:
    """An index is gathered by one earlier let of its kernel, from integers."""
    for kernel in kernels(program):
        gathered, waiting = set[str](), {let.name for let in kernel.lets if isinstance(let, ir.Gather)}
        for statement in statements(kernel):
            for node in nodes(statement.value):
                early = sorted(_named_by(node) & (waiting - gathered))
                yield from (_finding(f"{name} is not gathered yet", kernel, statement) for name in early)
            if isinstance(statement, ir.Gather):
                if statement.name in gathered or statement.name in {axis.name for axis in kernel.axes}:
                    yield _finding(f"{statement.name} names an index and something else", kernel, statement)
                if statement.value.dtype not in (DType.INT32, DType.INT64):
                    yield _finding(f"an index is gathered from {statement.value.dtype.value}", kernel, statement)
                gathered.add(statement.name)


def gathers_are_checked(program: ir.Program) -> Iterator[str]:
    """Before a kernel gathers an index, the buffer it is in has been checked for that extent."""
    checked: set[tuple[str, Integer, Integer]] = set()
    for step in program.steps:
        if isinstance(step, ir.Check):
            checked.add((step.buffer, step.low, step.high))
        for gather in step.lets if isinstance(step, ir.Kernel) else ():
            if isinstance(gather, ir.Gather):
                low = -gather.extent if gather.from_end else ZERO
                if (gather.value.buffer, low, gather.extent) not in checked:
                    yield _finding(f"{gather.value.buffer} was not checked", step, gather)


def iotas_have_no_memory(program: ir.Program) -> Iterator[str]:
    """An iota is an int64 vector without memory, so it is neither an operand of a call nor an output."""
    iotas = {step.target.name for step in program.steps if isinstance(step, ir.Iota)}
    for step in program.steps:
        if isinstance(step, ir.Iota) and (step.target.dtype is not DType.INT64 or len(step.target.shape) != 1):
            yield _finding(f"{step.target.name} is not an int64 vector", step)
        if isinstance(step, ir.View) and step.source in iotas:
            iotas.add(step.target.name)
        if isinstance(step, ir.Call):
            taken = [name for name in reads_of(step) if name in iotas]
            yield from (_finding(f"{name} takes no memory", step) for name in taken)
    yield from (f"output {name} takes no memory" for name in program.outputs if name in iotas)


CHECKS: tuple[Rule, ...] = (
    buffers_are_declared_once,
    buffers_are_declared_before_use,
    stores_go_to_kernel_buffers,
    targets_are_stored,
    outputs_exist,
    indices_match_rank,
    indices_are_bound,
    sizes_are_bound,
    guards_are_bound,
    axes_are_unique,
    locals_are_bound_once_before_use,
    functions_follow_the_table,
    half_is_converted_by_float32,
    loads_have_the_dtype_of_their_buffer,
    stores_have_the_dtype_of_their_buffer,
    kernels_do_not_read_what_they_write,
    reductions_follow_the_table,
    what_is_stored_once_is_one_value,
    indices_are_gathered_before_use,
    gathers_are_checked,
    iotas_have_no_memory,
)


def _finding(fact: str, step: ir.Step, statement: ir.Binding | ir.Store | None = None) -> str:
    header = print_step(step).partition("\n")[0]
    return "\n  ".join([fact, header] if statement is None else [fact, header, "  " + print_statement(statement)])


def _unbound(expressions: Iterable[Integer], bound: set[str]) -> list[str]:
    return sorted({name for expression in expressions for name in symbols_of(expression)} - bound)


def _misapplied(node: Apply) -> str | None:
    row = FUNCTIONS.get(node.function)
    if row is None:
        return f"{node.function} is not in the table of functions"
    if len(node.operands) != row.arity:
        return f"{node.function} takes {row.arity} operands and gets {len(node.operands)}"
    given = [operand.dtype for operand in node.operands]
    if node.function == "where" and given[0] is not DType.BOOL:
        return f"where chooses by a {given[0].value}"
    if len(set(given[1:] if node.function == "where" else given)) > 1:
        return f"{node.function} gets {', '.join(dtype.value for dtype in given)}"
    if given[-1].is_half:
        return f"{node.function} computes in {given[-1].value}"
    result = row.result_dtype(given[-1])
    return None if node.dtype is result else f"{node.function} gives {result.value}, not {node.dtype.value}"


def _seen_through(name: str, sources: dict[str, str]) -> set[str]:
    """A buffer and those that it is a view of."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        name = sources.get(name, name)
    return seen


def _named_by(node: Expression) -> set[str]:
    return {name for index in node.indices for name in symbols_of(index)} if isinstance(node, Load) else set()

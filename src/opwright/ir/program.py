"""The Program: steps over buffers, with run-time sizes.

    program = Program(name, inputs, sizes, steps, outputs, guards, cases, input_orders, output_orders)
    step    = Kernel(name, axes, lets, stores)        a fused loop nest: for every point of the axes, lets then stores
            | View(target, source, indices)           target[axes] is source[indices(axes)]; no data moves
            | Number(target, value)                   a size as a tensor without dimensions
            | Iota(target)                           the numbers 0, 1, 2, …; not stored
            | Call(targets, function, operands)       a library operation of torch, by name
            | Check(buffer, indices, low, high)       a condition on values: integers of a buffer are in a range
    let     = Let(name, value)                        binds a scalar inside a kernel
            | Reduce(name, function, value)             binds a reduction over the whole row
            | Gather(name, value, extent)               binds an index, read from a buffer of integers
    store   = Store(buffer, indices, value)           writes one element of a buffer
            | Store(…, reduction)                          or reduces all values written to one element
    case    = Case(sizes, steps)                      other steps for the same outputs, for certain sizes

A row of a kernel is all points that differ only in its last `row_axes` axes. A value that depends on none of these axes
is uniform over the row; so is a reduction. A store whose indices contain no row axis happens once per row. A reducing
store reduces over the outer axes that its indices leave out.

Loads may use a gathered index like an axis. A Check before the kernel ensures that it is below its extent: a Program
whose Check fails returns nothing.

Inputs and the results of library operations have run-time strides; what a kernel writes is contiguous. An order says
which dimensions of the caller's tensor those of an input or output are: an input of order (0, 2, 3, 1) is one in
channels last, seen as memory has it. Its sizes keep the numbers of the caller's dimensions. A View's
axes are `d0 d1 …`, one per dimension of its target. Sizes are symbols such as `gates_size_0`, read from the inputs at
each call; `sizes` names those that no input has; they are passed as numbers. The guards say for which sizes the Program
is valid. If all sizes of a case match, its steps run instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Load
from opwright.ir.expressions.integer import Condition, Integer, integer, substitute, symbol


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor inside a Program.

    Attributes:
        name: Of the tensor.
        dtype: Of its elements.
        shape: Its sizes.
        spoken: Whether the name is a variable of the reference.
        by_value: Of an input without dimensions: whether callers pass its element, not a tensor; kernels alone read it.
    """

    name: str
    dtype: DType
    shape: tuple[Integer, ...]
    spoken: bool = False
    by_value: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop from zero to its extent."""

    name: str
    extent: Integer


@dataclass(frozen=True, slots=True)
class Let:
    """A named scalar inside a kernel; `spoken` if the name is a variable of the reference."""

    name: str
    value: Expression
    spoken: bool = False


@dataclass(frozen=True, slots=True)
class Reduce:
    """A named reduction over a row; `function` is a row of ir/expressions/reductions.py."""

    name: str
    function: str
    value: Expression
    spoken: bool = False


@dataclass(frozen=True, slots=True)
class Gather:
    """A named index inside a kernel: an element of a buffer of integers.

    Attributes:
        name: The name that later loads use in their indices.
        value: The element.
        extent: The index is below it, and not negative.
        from_end: Whether negative elements count from the extent backwards.
    """

    name: str
    value: Load
    extent: Integer
    from_end: bool


Binding = Let | Reduce | Gather


@dataclass(frozen=True, slots=True)
class Store:
    """A write of one element; `reduction`, a row of ir/expressions/reductions.py, combines all values written there."""

    buffer: str
    indices: tuple[Integer, ...]
    value: Expression
    reduction: str | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """A fused loop nest.

    Attributes:
        name: Of the kernel.
        targets: The buffers that it is the first to write.
        axes: Its loops, outermost first.
        lets: Its values, each after those it needs.
        stores: What it writes.
        row_axes: How many of the last axes make a row, which reductions run over.
        short_rows: Whether its rows were so short in the trace that several are better computed at once.
    """

    name: str
    targets: tuple[Buffer, ...]
    axes: tuple[Axis, ...]
    lets: tuple[Binding, ...]
    stores: tuple[Store, ...]
    row_axes: int = 0
    short_rows: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """Another way to see a buffer."""

    target: Buffer
    source: str
    indices: tuple[Integer, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A size that takes part in arithmetic, such as the count a mean divides by."""

    target: Buffer
    value: Integer


@dataclass(frozen=True, slots=True)
class Iota:
    """The numbers 0, 1, 2, … as an int64 vector that takes no memory: only kernels and views may read it."""

    target: Buffer


@dataclass(frozen=True, slots=True)
class TensorOperand:
    """A buffer given to a library operation."""

    buffer: str


@dataclass(frozen=True, slots=True)
class SizeOperand:
    """An integer given to a library operation."""

    value: Integer


@dataclass(frozen=True, slots=True)
class ListOperand:
    """A list given to a library operation."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class ConstantOperand:
    """A number, a truth value or the name of a dtype, given to a library operation.

    `kind` is the schema type: "float", "bool" or "ScalarType".
    """

    value: float | bool | str
    kind: str


@dataclass(frozen=True, slots=True)
class OptionalOperand:
    """An operand whose schema type is optional; None when it is left out."""

    item: Operand | None


Operand = TensorOperand | SizeOperand | ListOperand | ConstantOperand | OptionalOperand


@dataclass(frozen=True, slots=True)
class Call:
    """A library operation of torch, e.g. "aten::mm"; if it `may_raise`, it stays where nobody reads its results.

    Python takes the last operands by name, if there are `keywords`, and those behind the first `needed` may be left out
    where they are None.
    """

    targets: tuple[Buffer, ...]
    function: str
    overload: str
    operands: tuple[Operand, ...]
    may_raise: bool = False
    keywords: tuple[str, ...] = ()
    needed: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """A check of values: the integers of buffer[indices], a View of this shape, are at least `low` and below `high`."""

    buffer: str
    shape: tuple[Integer, ...]
    indices: tuple[Integer, ...]
    low: Integer
    high: Integer


Step = Kernel | View | Number | Iota | Call | Check


@dataclass(frozen=True, slots=True)
class Case:
    """Faster steps for the outputs of a Program, valid only for certain sizes."""

    sizes: tuple[tuple[str, int], ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Steps over buffers; see the grammar above."""

    name: str
    inputs: tuple[Buffer, ...]
    sizes: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    guards: tuple[Condition, ...]
    cases: tuple[Case, ...] = ()
    input_orders: tuple[tuple[int, ...], ...] = ()
    output_orders: tuple[tuple[int, ...], ...] = ()

    def input_order(self, position: int) -> tuple[int, ...]:
        """The caller's dimension for each dimension of an input."""
        order = self.input_orders[position] if self.input_orders else ()
        return order or tuple(range(len(self.inputs[position].shape)))


def programs_of(program: Program) -> tuple[Program, ...]:
    """The Program without its cases, and each of them as a Program of its own."""
    return replace(program, cases=()), *(_of_case(program, number, case) for number, case in enumerate(program.cases))


def _of_case(program: Program, number: int, case: Case) -> Program:
    numbers = {name: integer(size) for name, size in case.sizes}
    inputs = tuple(
        replace(buffer, shape=tuple(substitute(size, numbers) for size in buffer.shape)) for buffer in program.inputs
    )
    met = tuple(Condition("==", symbol(name), size) for name, size in numbers.items())
    name = f"{program.name}_case_{number}"
    return replace(program, name=name, inputs=inputs, steps=case.steps, guards=(*program.guards, *met), cases=())


def size_symbol(buffer: str, dimension: int) -> Integer:
    """The symbol for a run-time size of an input."""
    return symbol(f"{buffer}_size_{dimension}")


def view_axes(rank: int) -> tuple[str, ...]:
    """The names of a View's axes."""
    return tuple(f"d{dimension}" for dimension in range(rank))


def targets_of(step: Step) -> tuple[Buffer, ...]:
    """The buffers a step declares."""
    match step:
        case View(target=target) | Number(target=target) | Iota(target=target):
            return (target,)
        case Kernel(targets=targets) | Call(targets=targets):
            return targets
        case Check():
            return ()
        case _:
            assert_never(step)


def buffers_of(program: Program) -> dict[str, Buffer]:
    """All buffers by name."""
    declared = {buffer.name: buffer for buffer in program.inputs}
    for step in program.steps:
        declared.update((buffer.name, buffer) for buffer in targets_of(step))
    return declared

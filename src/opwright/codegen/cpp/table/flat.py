"""flat: a Program that updates tensors element by element → the same for their memory in any dense order.

Before: kernel over i0 < s0, i1 < s1:  let b1 = b1[]; v_1[i0, i1] = v[i0, i1] * b1 + g[i0, i1] * (1.0 - b1)
After:  numbers:                       let b1 = b1[]; let number = 1.0 - b1
        point:                         v_1[i] = v[i] * b1 + g[i] * number

What is the same for all elements is computed once for a tensor, before its elements. What a reduction over the whole
tensor gives is known after a pass over its elements, in which nothing is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from opwright.codegen.cpp.table.merged import merged, refusal
from opwright.ir.contents import locals_in, needed
from opwright.ir.expressions.expression import Apply, Cast, Expression, Load, Local, leaves, rewrite_children
from opwright.ir.expressions.integer import ONE, Integer, Symbol, symbols_of
from opwright.ir.names.fresh import fresh
from opwright.ir.program import Binding, Buffer, Kernel, Let, Number, Program, Reduce, Store
from opwright.ir.rows import varying_locals

LEAST_SIZE = 2  # of a dimension whose size is a symbol: sizes of one are constants
_NONE = "no dimension"


@dataclass(frozen=True, slots=True)
class Flat:
    """An update of tensors, element by element.

    Attributes:
        numbers: What is the same for all elements, and known before them.
        kept: Which of these are needed later.
        scalars: Results without dimensions; the last output among them.
        counts: Buffers that hold how many elements the tensor has.
        passes: What is reduced in each pass over the elements before the last one.
        late: Reductions, and what is the same for all elements and computed of them, or of distant inputs.
        kernel: The rest, of which every access is at the same place.
        inputs: The inputs of the Program.
        replaced: For each output but the last, the input in whose memory it lies; None if it is that input unchanged.
        outputs: The outputs; the last one says whether the others may be stored.
        distant: The inputs without dimensions that the processor cannot read.
    """

    numbers: tuple[Let, ...]
    kept: tuple[Let, ...]
    scalars: tuple[tuple[Store, Buffer], ...]
    counts: frozenset[str]
    passes: tuple[tuple[Reduce, ...], ...]
    late: tuple[Let | Reduce, ...]
    kernel: Kernel
    inputs: tuple[Buffer, ...]
    replaced: tuple[str | None, ...]
    outputs: tuple[str, ...]
    distant: frozenset[str]

    @property
    def is_of_elements(self) -> bool:
        """Whether each element is updated whatever the others are, and however many there are."""
        return not (self.passes or self.counts)

    def needed_in(self, values: Sequence[Expression]) -> tuple[list[Let | Reduce], list[Let]]:
        """What values of a point need: of what is late, and of what differs from point to point."""
        lets = needed(self.kernel.lets, values)
        late = needed(self.late, [*values, *(let.value for let in lets)])
        return [let for let in late if isinstance(let, (Let, Reduce))], [let for let in lets if isinstance(let, Let)]


def flat(program: Program, replaced: Sequence[str], distant: Collection[str] = ()) -> Flat:
    """See the top.

    Args:
        program: After the passes; its last output is a truth value.
        replaced: For each output but the last, the input in whose memory it lies.
        distant: The inputs without dimensions that the processor cannot read.

    Raises:
        NotElementwise: If it does anything else than that.
    """
    program = merged(program)
    (kernel,) = (step for step in program.steps if isinstance(step, Kernel))
    _refuse_sizes(program)
    outputs, given = program.outputs[:-1], {buffer.name for buffer in program.inputs}
    if len(set(program.outputs)) < len(program.outputs):
        raise refusal("two of its results are the same")
    moved = [output for output, name in zip(outputs, replaced, strict=True) if output in given and output != name]
    if moved:
        raise refusal(f"it returns its argument '{moved[0]}' in another place")
    varying, levels = varying_locals(kernel), _levels(kernel.lets)
    kernel, hoisted = _hoisted(kernel)
    levels |= {let.name: _level(let.value, levels) for let in hoisted}
    elements = [store for store in kernel.stores if store.indices]
    if any(_level(s.value, levels) or _varies(s.value, varying) for s in kernel.stores if not s.indices):
        raise refusal("a state without dimensions is computed of a whole tensor")
    uniform = [let for let in (*kernel.lets, *hoisted) if let.name not in varying]  # each after those it needs
    there = _computed_of(uniform, distant)
    if any(name in there for store in kernel.stores if not store.indices for name in _names_in(store.value)):
        raise refusal("what the processor computes depends on a number in the memory of the GPU")
    numbers = tuple(let for let in uniform if isinstance(let, Let) and not levels[let.name] and let.name not in there)
    late = tuple(let for let in uniform if isinstance(let, (Let, Reduce)) and (levels[let.name] or let.name in there))
    reductions = [let for let in late if isinstance(let, Reduce)]
    passes = tuple(
        tuple(let for let in reductions if levels[let.name] == number + 1)
        for number in range(max((levels[let.name] for let in reductions), default=0))
    )
    point = replace(
        kernel, lets=tuple(let for let in kernel.lets if let.name in varying), stores=tuple(elements), row_axes=0
    )
    read = {local.name for local in locals_in(*_values(point), *(let.value for let in late))}
    made = {target.name: target for target in kernel.targets}
    return Flat(
        numbers=numbers,
        kept=tuple(let for let in numbers if let.name in read),
        scalars=tuple((store, made[store.buffer]) for store in kernel.stores if not store.indices),
        counts=frozenset(step.target.name for step in program.steps if isinstance(step, Number)),
        passes=passes,
        late=late,
        kernel=point,
        inputs=program.inputs,
        replaced=tuple(None if output in given else name for output, name in zip(outputs, replaced, strict=True)),
        outputs=program.outputs,
        distant=frozenset(distant),
    )


def _refuse_sizes(program: Program) -> None:
    """Conditions on sizes other than that tensors have the same ones, and sizes other than the number of elements."""
    for guard in program.guards:
        is_usual = guard.relation == ">=" and guard.right.constant == LEAST_SIZE
        ends = {str(side).rpartition("_size_")[2] for side in (guard.left, guard.right)}
        is_unit = guard.relation == "==" and guard.right == ONE  # which tells kinds of parameters apart
        is_same = guard.relation == "==" and len(ends) == 1 and all(symbols_of(s) for s in (guard.left, guard.right))
        if not (is_usual or is_unit or is_same):
            raise refusal(f"it depends on sizes ({guard})")
    if program.sizes:
        raise refusal("it computes with sizes")
    dimensions = sorted(_dimensions(next(buffer for buffer in program.inputs if buffer.shape).shape))
    for step in program.steps:
        if isinstance(step, Number) and sorted(_factors(step.value)) != dimensions:
            raise refusal(f"it computes with a size ({step.value})")


def _dimensions(shape: Sequence[Integer]) -> list[str]:
    return [str(size).rpartition("_size_")[2] for size in shape if size != ONE]


def _factors(value: Integer) -> list[str]:
    """The dimensions of which an integer is the product; a mark if it is something else."""
    match value.terms:
        case ((symbols, 1),):
            return [each.name.rpartition("_size_")[2] if isinstance(each, Symbol) else _NONE for each in symbols]
    return [_NONE]


def _levels(lets: Sequence[Binding]) -> dict[str, int]:
    """How many passes over the elements each local comes after."""
    levels: dict[str, int] = {}
    for let in lets:
        levels[let.name] = _level(let.value, levels) + isinstance(let, Reduce)
    return levels


def _computed_of(lets: Sequence[Binding], buffers: Collection[str]) -> set[str]:
    """The names of what is computed of some buffers."""
    found: set[str] = set()
    for let in lets:
        loads = any(isinstance(leaf, Load) and leaf.buffer in buffers for leaf in leaves(let.value))
        if loads or not found.isdisjoint(_names_in(let.value)):
            found.add(let.name)
    return found


def _names_in(value: Expression) -> set[str]:
    return {local.name for local in locals_in(value)}


def _level(value: Expression, levels: Mapping[str, int]) -> int:
    return max((levels[local.name] for local in locals_in(value)), default=0)


def _values(kernel: Kernel) -> list[Expression]:
    return [let.value for let in kernel.lets] + [store.value for store in kernel.stores]


def _hoisted(kernel: Kernel) -> tuple[Kernel, list[Let]]:
    """Name every part of a formula that is the same for all elements."""
    varying = varying_locals(kernel)
    taken = {let.name for let in kernel.lets} | {store.buffer for store in kernel.stores}
    made: dict[Expression, Let] = {}

    def named(value: Expression) -> Expression:
        if isinstance(value, (Apply, Cast)) and not _varies(value, varying) and locals_in(value):
            if value not in made:
                name = fresh("number", taken)
                taken.add(name)
                made[value] = Let(name, value)
            return Local(made[value].name, value.dtype)
        return rewrite_children(value, named)

    lets = tuple(
        replace(let, value=named(let.value))
        if (let.name in varying and not isinstance(let.value, Load)) or isinstance(let, Reduce)
        else let
        for let in kernel.lets
    )
    stores = tuple(Store(s.buffer, s.indices, named(s.value), s.reduction) if s.indices else s for s in kernel.stores)
    return replace(kernel, lets=lets, stores=stores), list(made.values())


def _varies(value: Expression, varying: Collection[str]) -> bool:
    return any(isinstance(leaf, Load) or (isinstance(leaf, Local) and leaf.name in varying) for leaf in leaves(value))

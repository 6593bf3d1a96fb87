"""What the sources of an update have in common, whatever the backend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from opwright.codegen.cpp.expression import CPP, CPP_TYPES, Dialect, spell_value
from opwright.codegen.cpp.loops.access import Access, accesses_of
from opwright.codegen.cpp.loops.reductions import ReducerSpelling, row_reducer
from opwright.codegen.cpp.loops.rows import reducing_step
from opwright.codegen.cpp.part import Formulas, part_of
from opwright.codegen.cpp.table.flat import Flat, flat
from opwright.codegen.cpp.table.merged import merged
from opwright.codegen.cpp.table.numbers import Given, NumbersWriter, kept_in, kept_number
from opwright.codegen.placeholders import placeholder, plain_refusals
from opwright.errors import NotElementwise
from opwright.ir.contents import locals_in, needed
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Load
from opwright.ir.program import Buffer, Kernel, Let, Program, Reduce, Store
from opwright.passes.order import finish


@dataclass(frozen=True, slots=True)
class Updated:
    """An update as its text is written of.

    Attributes:
        program: A Program after the passes, of tensors of one shape. Its last output says whether it is valid.
        numbers: Its inputs that are numbers, in the order of a row of the table.
        step: The number that counts steps, which the table has for each tensor.
        replaced: For each output but the last, the input that it replaces. A wider one than an input of a half type is
            rounded at random.
        whole: Whether kernels see whole tensors, and not parts of them.
        distant: Its inputs without dimensions that the processor cannot read.
    """

    program: Program
    numbers: tuple[str, ...]
    step: str
    replaced: tuple[str, ...]
    whole: bool = True
    distant: tuple[str, ...] = ()

    @property
    def operands(self) -> tuple[str, ...]:
        """The tensors of a row of the table, in order."""
        names = (buffer.name for buffer in self.program.inputs)
        return tuple(name for name in names if name not in (*self.numbers, self.step))


def writer_of(updated: Updated, formulas: Formulas, dialect: Dialect = CPP) -> tuple[TableWriter, Sequence[str]]:
    """What writes an update, and the comment lines of its elements; names are placeholders.

    Raises:
        NotElementwise: If it does more than update elements.
    """
    program = finish(updated.program, "cpp")  # which has the passes for independent elements of every backend
    named = flat(program, updated.replaced, updated.distant)  # refuses with the names of the function
    if not (named.is_of_elements or updated.whole):
        raise NotElementwise("it looks at a whole tensor, of which there are only parts")
    part = part_of(merged(program), lambda kernel: formulas(_shown(kernel, program.outputs[-1])))
    (remark,) = part.remarks
    with plain_refusals():
        distant = [placeholder(name) for name in updated.distant]
        update = flat(part.program, [placeholder(name) for name in updated.replaced], distant)
        given = [placeholder(name) for name in updated.numbers]
        writer = TableWriter(program.name, update, given, placeholder(updated.step), dialect)
    return writer, remark


def _shown(kernel: Kernel, valid: str) -> Kernel:
    """A kernel as its formulas are shown: without whether the update is valid."""
    stores = tuple(store for store in kernel.stores if store.buffer != valid)
    return replace(kernel, lets=tuple(needed(kernel.lets, [store.value for store in stores])), stores=stores)


@dataclass(frozen=True, slots=True)
class Pass:
    """One way over the elements of a tensor.

    Attributes:
        reductions: What it reduces.
        kept: The numbers that it needs.
        late: What it needs of passes before.
        lets: What it computes for each element.
        accesses: What it reads and writes.
    """

    reductions: tuple[Reduce, ...]
    kept: Sequence[Let]
    late: Sequence[Let | Reduce]
    lets: Sequence[Let]
    accesses: Sequence[Access]


class TableWriter:
    """Writes the parts of an update of many tensors: what is computed for a tensor, and for each of its elements.

    Args:
        name: Of the update.
        update: The update.
        numbers: Its inputs that are numbers, in the order of a row of the table.
        step: The number that counts steps.
        dialect: How elements are computed.
    """

    def __init__(self, name: str, update: Flat, numbers: Sequence[str], step: str, dialect: Dialect = CPP) -> None:
        self.dialect = dialect
        self.name = name
        self.update = update
        self.operands = [buffer for buffer in update.inputs if buffer.name not in (*numbers, step)]
        self.places = {buffer.name: position for position, buffer in enumerate(self.operands)}
        self.targets = {
            output: place for output, place in zip(update.outputs, update.replaced, strict=False) if place is not None
        }
        given = Given(numbers, step, self.places, update.counts)
        self._numbers = NumbersWriter(given, update.numbers, update.scalars, update.kept, update.outputs[-1])

    @property
    def type(self) -> str:
        """The struct of its functions: a name that no header has, whatever the update is called."""
        return f"{self.name}_optimizer"

    def traits(self) -> Iterable[str]:
        """What the loops over a table ask of it."""
        has_scalars = any(not buffer.shape and buffer.name not in self.update.distant for buffer in self.operands)
        yield f"static constexpr bool has_scalars = {_truth(has_scalars)};  // operands without dimensions"
        yield f"static constexpr bool has_counts = {_truth(bool(self.update.counts))};  // the number of elements"
        yield f"static constexpr int passes = {self.passes};  // over the elements, before the update"

    def fields(self) -> Iterable[str]:
        """The members of `Numbers`: what is computed once for a tensor."""
        return self._numbers.fields()

    def compute(self) -> Iterable[str]:
        """The function that computes them, on the processor."""
        return self._numbers.compute("Size count")

    def finish(self) -> Iterable[str]:
        """The function that stores results without dimensions."""
        return self._numbers.finish(self.targets, {buffer.name: buffer.dtype for buffer in self.operands})

    @property
    def passes(self) -> int:
        """How often it goes over the elements before it updates them."""
        return len(self.update.passes)

    def spellings(self) -> dict[str, ReducerSpelling]:
        """How what it reduces is spelled, by name."""
        reductions = [reduction for of_pass in self.update.passes for reduction in of_pass]
        return {r.name: row_reducer(r.function, r.value.dtype, self.dialect) for r in reductions}

    def offset_of(self, buffer: Buffer, element: str) -> str:
        """In bytes, the place of an element of an operand; numbers have one."""
        return "0" if buffer.name in self.update.distant else f"{element} * {buffer.dtype.bytes}"

    def pass_of(self, number: int) -> Pass:
        """What a pass does; the last one updates."""
        reductions = self.update.passes[number] if number < self.passes else ()
        stores = () if number < self.passes else self.update.kernel.stores
        values = [*(reduction.value for reduction in reductions), *(store.value for store in stores)]
        late, lets = self.update.needed_in(values)
        kernel = replace(self.update.kernel, lets=tuple(lets), stores=stores)
        accesses = [self._in_place(access) for access in accesses_of(kernel, set(), in_parts=False)]
        needs = {local.name for local in locals_in(*values, *(let.value for let in (*lets, *late)))}
        kept = [let for let in self.update.kept if let.name in needs]
        return Pass(reductions, kept, late, lets, accesses)

    def before(self, of_pass: Pass) -> Iterable[str]:
        """What elements need of a tensor: numbers, reductions, and operands, of an array `row` of their addresses."""
        for let in of_pass.kept:
            yield f"  const {CPP_TYPES[let.value.dtype]} {let.name} = numbers.{kept_number(let)};"
        spellings = self.spellings()
        for late in of_pass.late:
            if isinstance(late, Reduce):
                made = spellings[late.name].end.format(f"totals.{late.name}")
            elif isinstance(late.value, Load):
                made = self._numbers.given.element(late.value, "row")
            else:
                made = self._spelled(late)
            yield f"  const {CPP_TYPES[late.value.dtype]} {late.name} = {made};"
        for access in of_pass.accesses:
            yield from access.pointer(self._place(access))

    def element(self, of_pass: Pass) -> Iterable[str]:
        """What is computed and stored for the element `j`."""
        by_name = {access.name: access for access in of_pass.accesses}
        for let in of_pass.lets:
            read = isinstance(let.value, Load)
            value = by_name[let.name].element(let.name) if read else self._spelled(let)
            yield f"    const {CPP_TYPES[let.value.dtype]} {let.name} = {value};"
        stored = [access for access in of_pass.accesses if access.stored]
        for count, (access, store) in enumerate(zip(stored, self._stores(stored), strict=True)):
            yield f"    {access.element(access.name)} = {self._stored(store.value, access.dtype, count)};"

    def reduced(self, reduction: Reduce, into: str) -> Iterable[str]:
        """Statements that reduce the element `j`."""
        return reducing_step(self.spellings()[reduction.name], into, self._spelled(reduction), reduction.name)

    def _spelled(self, let: Let | Reduce) -> str:
        return spell_value(let.value, self.dialect)

    def _stores(self, accesses: Sequence[Access]) -> list[Store]:
        stores = {store.buffer: store for store in self.update.kernel.stores}
        return [stores[access.buffer] for access in accesses]

    def _place(self, access: Access) -> int:
        return self.places[self.targets[access.buffer] if access.stored else access.buffer]

    def _stored(self, value: Expression, dtype: DType, count: int) -> str:
        """A result, in the dtype of the tensor that it replaces."""
        return kept_in(value, dtype, f"random_bits(random, j, {count})", self.dialect)

    def _in_place(self, access: Access) -> Access:
        """A store, to the tensor that its result replaces."""
        if not access.stored:
            return access
        if access.buffer not in self.targets:
            raise NotElementwise(f"it computes '{access.buffer}' and does not return it")
        return replace(access, dtype=self.operands[self.places[self.targets[access.buffer]]].dtype)


def _truth(value: bool) -> str:
    return "true" if value else "false"

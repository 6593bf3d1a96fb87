"""What the sources of an update have in common, whatever the backend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from opwright.codegen.cpp.expression import CPP, CPP_TYPES, Dialect, spell_value
from opwright.codegen.cpp.loops.access import Access, accesses_of
from opwright.codegen.cpp.part import Formulas, part_of
from opwright.codegen.cpp.table.flat import Flat, flat
from opwright.codegen.placeholders import placeholder, plain_refusals
from opwright.errors import NotElementwise
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Load, cast
from opwright.ir.program import Kernel, Let, Program, Store
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
    """

    program: Program
    numbers: tuple[str, ...]
    step: str
    replaced: tuple[str, ...]

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
    flat(program, updated.replaced)  # refuses with the names of the function
    part = part_of(program, formulas)
    remarks = {id(kernel): remark for kernel, remark in zip(_kernels(part.program), part.remarks, strict=True)}
    with plain_refusals():
        update = flat(part.program, [placeholder(name) for name in updated.replaced])
        given = [placeholder(name) for name in updated.numbers]
        writer = TableWriter(program.name, update, given, placeholder(updated.step), dialect)
    return writer, remarks[id(next(kernel for kernel in _kernels(part.program) if kernel.axes))]


def _kernels(program: Program) -> list[Kernel]:
    return [step for step in program.steps if isinstance(step, Kernel)]


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
        self.numbers = numbers
        self.step = step
        self.operands = [buffer for buffer in update.inputs if buffer.name not in (*numbers, step)]
        self.places = {buffer.name: position for position, buffer in enumerate(self.operands)}
        made = [target for kernel in update.before for target in kernel.targets]
        self.made = {target.name: target for target in made}
        self.targets = {
            output: place for output, place in zip(update.outputs, update.replaced, strict=False) if place is not None
        }
        self.results = [name for name in self.targets if name in self.made]

    @property
    def has_scalars(self) -> bool:
        """Whether it reads operands without dimensions before the elements."""
        return any(not buffer.shape for buffer in self.operands)

    def fields(self) -> Iterable[str]:
        """The members of `Numbers`: what is computed once for a tensor."""
        for name, dtype in self._fields():
            yield f"  {CPP_TYPES[dtype]} {name};"

    def _fields(self) -> list[tuple[str, DType]]:
        made = [(target.name, target.dtype) for target in self.made.values()]
        return [*made, *((_kept(let), let.value.dtype) for let in self.update.kept)]

    def compute(self) -> Iterable[str]:
        """The function that computes them, on the processor."""
        yield "static bool compute(const double* row, double step, void* const* first, Numbers& numbers) {"
        for kernel in self.update.before:
            yield "  {"
            for let in kernel.lets:
                assert isinstance(let, Let)
                yield f"    {self._number(let)}"
            for store in kernel.stores:
                yield f"    numbers.{store.buffer} = {spell_value(store.value)};"
            yield "  }"
        for let in self.update.numbers:
            yield f"  {self._number(let)}"
        for let in self.update.kept:
            yield f"  numbers.{_kept(let)} = {let.name};"
        valid = self.update.outputs[-1]
        yield f"  return numbers.{valid};"
        yield "}"

    def _number(self, let: Let) -> str:
        value = self._loaded(let.value) if isinstance(let.value, Load) else spell_value(let.value)
        return f"const {CPP_TYPES[let.value.dtype]} {let.name} = {value};"

    def _loaded(self, load: Load) -> str:
        if load.buffer in self.made:
            return f"numbers.{load.buffer}"
        if load.buffer == self.step:
            return "step"
        if load.buffer in self.numbers:
            return f"row[{self.numbers.index(load.buffer)}]"
        return f"*static_cast<const {CPP_TYPES[load.dtype]}*>(first[{self.places[load.buffer]}])"

    def kept(self) -> Iterable[str]:
        """The numbers that elements need, by their names."""
        for let in self.update.kept:
            yield f"  const {CPP_TYPES[let.value.dtype]} {let.name} = numbers.{_kept(let)};"

    def pointers(self) -> Iterable[str]:
        """The operands, of an array `row` of their addresses."""
        for access in self._accesses():
            yield from access.pointer(self._place(access))

    def element(self) -> Iterable[str]:
        """The update of the element `j`."""
        accesses = self._accesses()
        by_name = {access.name: access for access in accesses}
        for let in (let for let in self.update.kernel.lets if isinstance(let, Let)):
            read = isinstance(let.value, Load)
            value = by_name[let.name].element(let.name) if read else spell_value(let.value, self.dialect)
            yield f"    const {CPP_TYPES[let.value.dtype]} {let.name} = {value};"
        stored = [access for access in accesses if access.stored]
        for count, (access, store) in enumerate(zip(stored, self._stores(stored), strict=True)):
            yield f"    {access.element(access.name)} = {self._stored(store.value, access.dtype, count)};"

    def _accesses(self) -> list[Access]:
        return [self._in_place(access) for access in accesses_of(self.update.kernel, set(), in_parts=False)]

    def _stores(self, accesses: Sequence[Access]) -> list[Store]:
        stores = {store.buffer: store for store in self.update.kernel.stores}
        return [stores[access.buffer] for access in accesses]

    def _place(self, access: Access) -> int:
        return self.places[self.targets[access.buffer] if access.stored else access.buffer]

    def _stored(self, value: Expression, dtype: DType, count: int) -> str:
        """A result, in the dtype of the tensor that it replaces."""
        if not (dtype.is_half and value.dtype is not dtype):
            return spell_value(cast(value, dtype), self.dialect)
        operand = spell_value(cast(value, DType.FLOAT32), self.dialect)
        return f"to_{dtype.value}_randomly({operand}, random_bits(random, j, {count}))"

    def _in_place(self, access: Access) -> Access:
        """A store, to the tensor that its result replaces."""
        if not access.stored:
            return access
        if access.buffer not in self.targets:
            raise NotElementwise(f"it computes '{access.buffer}' and does not return it")
        return replace(access, dtype=self.operands[self.places[self.targets[access.buffer]]].dtype)

    def finish(self) -> Iterable[str]:
        """The function that stores results without dimensions."""
        yield "static void finish(void* const* first, const Numbers& numbers) {"
        for name in self.results:
            kind = CPP_TYPES[self.made[name].dtype]
            yield f"  *static_cast<{kind}*>(first[{self.places[self.targets[name]]}]) = numbers.{name};"
        yield "}"


def _kept(let: Let) -> str:
    return f"{let.name}_kept"

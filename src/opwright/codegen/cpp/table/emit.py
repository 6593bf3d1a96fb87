"""emit_table: an update of tensors, element by element → C++ that runs it for a table of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from opwright.codegen.allocator import allocate
from opwright.codegen.cpp.expression import CPP_TYPES, spell_value
from opwright.codegen.cpp.line_breaks import broken
from opwright.codegen.cpp.loops.access import Access, accesses_of
from opwright.codegen.cpp.loops.kernel import grain
from opwright.codegen.cpp.names import CPP
from opwright.codegen.cpp.part import Formulas, part_of
from opwright.codegen.cpp.program import CppSource, digest
from opwright.codegen.cpp.table.flat import Flat, flat
from opwright.codegen.placeholders import placeholder, plain_refusals
from opwright.errors import NotElementwise
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Load, cast
from opwright.ir.program import Kernel, Let, Program, Store
from opwright.passes.order import finish

ENTRY = "opwright_update"
"""The C function of a library, of a `Table` of include/opwright/table.h; returns how many tensors it refuses."""


@dataclass(frozen=True, slots=True)
class TableSource:
    """An emitted update.

    Attributes:
        source: The C++.
        operands: The tensors of a row of the table, in order: names of inputs.
        numbers: The numbers of a row of hyper-parameters, in order: names of inputs.
    """

    source: CppSource
    operands: tuple[str, ...]
    numbers: tuple[str, ...]


def emit_table(
    program: Program,
    numbers: Sequence[str],
    step: str,
    replaced: Sequence[str],
    *,
    formulas: Formulas,
    header: str,
) -> TableSource:
    """Write a Program as an update of many tensors in place.

    Args:
        program: A Program after the passes, of tensors of one shape. Its last output says whether it is valid.
        numbers: Its inputs that are numbers, in the order of a row of the table.
        step: The number that counts steps, which the table has for each tensor.
        replaced: For each output but the last, the input that it replaces. A wider one than an input of a half type is
            rounded at random.
        formulas: Comment lines for a kernel.
        header: Comment lines for the top.

    Raises:
        NotElementwise: If it does more than that.
    """
    program = finish(program, "cpp")
    flat(program, replaced)  # refuses with the names of the function
    part = part_of(program, formulas)
    remarks = {id(kernel): remark for kernel, remark in zip(_kernels(part.program), part.remarks, strict=True)}
    with plain_refusals():
        update = flat(part.program, [placeholder(name) for name in replaced])
        given = [placeholder(name) for name in numbers]
        writer = _Writer(program.name, update, given, placeholder(step))
        over_elements = next(kernel for kernel in _kernels(part.program) if kernel.axes)
        draft = writer.text(remarks[id(over_elements)])
    body = header + broken(allocate([draft], CPP).spell(draft))
    operands = [buffer.name for buffer in program.inputs if buffer.name not in (*numbers, step)]
    return TableSource(CppSource(f"{program.name}_{digest(body)}", body), tuple(operands), tuple(numbers))


def _kernels(program: Program) -> list[Kernel]:
    return [step for step in program.steps if isinstance(step, Kernel)]


class _Writer:
    def __init__(self, name: str, update: Flat, numbers: Sequence[str], step: str) -> None:
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

    def text(self, remark: Sequence[str]) -> str:
        body = [*self._numbers(), "", *self._compute(), "", *self._elements(remark), "", *self._finish()]
        sizes = ", ".join(f"sizeof({CPP_TYPES[buffer.dtype]})" for buffer in self.operands)
        count, least = len(self.operands), grain(self.update.kernel)
        return "\n".join(
            [
                '#include "opwright/table.h"',
                "",
                "namespace opwright::emitted {",
                "",
                f"struct {self.name} {{",
                *(f"  {line}" if line and not line.startswith("#") else line for line in body),
                "};",
                "",
                "}  // namespace opwright::emitted",
                "",
                f'extern "C" __attribute__((visibility("default"))) int64_t {ENTRY}(const opwright::Table* table) {{',
                "  using namespace opwright;",
                f"  const Size item_bytes[] = {{{sizes}}};",
                f"  return update_all<emitted::{self.name}, {count}>(*table, item_bytes, {least});",
                "}",
                "",
                f'extern "C" __attribute__((visibility("default"))) int64_t {ENTRY}_bytes() {{',
                f"  return sizeof(opwright::emitted::{self.name}::Numbers);",
                "}",
                "",
            ]
        )

    def _numbers(self) -> Iterable[str]:
        scalars = "true" if any(not buffer.shape for buffer in self.operands) else "false"
        yield f"static constexpr bool has_scalars = {scalars};"
        yield ""
        yield "struct Numbers {"
        for name, dtype in self._fields():
            yield f"  {CPP_TYPES[dtype]} {name};"
        yield "};"

    def _fields(self) -> list[tuple[str, DType]]:
        made = [(target.name, target.dtype) for target in self.made.values()]
        return [*made, *((_kept(let), let.value.dtype) for let in self.update.kept)]

    def _compute(self) -> Iterable[str]:
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

    def _elements(self, remark: Sequence[str]) -> Iterable[str]:
        kernel = self.update.kernel
        yield from (f"// {line}" for line in remark)
        yield "static void elements(Size count, void* const* row, const Numbers& numbers, RandomStream random) {"
        for let in self.update.kept:
            yield f"  const {CPP_TYPES[let.value.dtype]} {let.name} = numbers.{_kept(let)};"
        accesses = [self._in_place(access) for access in accesses_of(kernel, set(), in_parts=False)]
        for access in accesses:
            yield from access.pointer(self._place(access))
        by_name = {access.name: access for access in accesses}
        yield "#pragma omp simd"
        yield "  for (Size j = 0; j < count; ++j) {"
        for let in (let for let in kernel.lets if isinstance(let, Let)):
            read = isinstance(let.value, Load)
            value = by_name[let.name].element(let.name) if read else spell_value(let.value)
            yield f"    const {CPP_TYPES[let.value.dtype]} {let.name} = {value};"
        stored = [access for access in accesses if access.stored]
        for count, (access, store) in enumerate(zip(stored, self._stores(stored), strict=True)):
            yield f"    {access.element(access.name)} = {self._stored(store.value, access.dtype, count)};"
        yield "  }"
        yield "}"

    def _stores(self, accesses: Sequence[Access]) -> list[Store]:
        stores = {store.buffer: store for store in self.update.kernel.stores}
        return [stores[access.buffer] for access in accesses]

    def _place(self, access: Access) -> int:
        return self.places[self.targets[access.buffer] if access.stored else access.buffer]

    def _stored(self, value: Expression, dtype: DType, count: int) -> str:
        """A result, in the dtype of the tensor that it replaces."""
        if not (dtype.is_half and value.dtype is not dtype):
            return spell_value(cast(value, dtype))
        operand = spell_value(cast(value, DType.FLOAT32))
        return f"to_{dtype.value}_randomly({operand}, random_bits(random, j, {count}))"

    def _in_place(self, access: Access) -> Access:
        """A store, to the tensor that its result replaces."""
        if not access.stored:
            return access
        if access.buffer not in self.targets:
            raise NotElementwise(f"it computes '{access.buffer}' and does not return it")
        return replace(access, dtype=self.operands[self.places[self.targets[access.buffer]]].dtype)

    def _finish(self) -> Iterable[str]:
        yield "static void finish(void* const* first, const Numbers& numbers) {"
        for name in self.results:
            kind = CPP_TYPES[self.made[name].dtype]
            yield f"  *static_cast<{kind}*>(first[{self.places[self.targets[name]]}]) = numbers.{name};"
        yield "}"


def _kept(let: Let) -> str:
    return f"{let.name}_kept"

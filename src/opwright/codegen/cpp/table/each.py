"""emit_each: an update of tensors by any kernels → C++ that runs it for each tensor of a table.

What is computed of numbers alone is computed first, among it whether the update is valid; a tensor for which it is not
stays as it was. Tensors share the threads: a large one takes all, small ones take one each. The backends differ in how
kernels are written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from opwright.codegen.allocator import allocate
from opwright.codegen.cpp.expression import CPP_TYPES, TORCH_TYPES
from opwright.codegen.cpp.line_breaks import broken
from opwright.codegen.cpp.loops.kernels import CppKernels
from opwright.codegen.cpp.loops.shared_functions import SharedFunctions
from opwright.codegen.cpp.names import CPP
from opwright.codegen.cpp.part import Formulas, Part, part_of
from opwright.codegen.cpp.program import CppSource, Kernels, LauncherWriter, digest
from opwright.codegen.cpp.size import spell_size
from opwright.codegen.cpp.table.emit import TableSource
from opwright.codegen.cpp.table.merged import merged_numbers
from opwright.codegen.cpp.table.numbers import Given, NumbersWriter
from opwright.codegen.cpp.used import used
from opwright.codegen.placeholders import placeholder, plain_refusals, with_placeholders
from opwright.ir.expressions.expression import Load
from opwright.ir.program import Call, Let, Number, Program, Store, buffers_of
from opwright.passes.order import finish


@dataclass(frozen=True, slots=True)
class UpdatedEach:
    """An update as its text is written of.

    Attributes:
        numbers: What is computed of numbers alone, after the passes.
        rest: What is computed of tensors, after the passes; inputs that the other one computes are passed by value.
        row: The inputs that are numbers, in the order of a row of the table.
        step: The number that counts steps, which the table has for each tensor.
        replaced: For each result, the input that it replaces. A wider one than an input of a half type is rounded at
            random.
        valid: The output of `numbers` that says whether the update is valid.
    """

    numbers: Program
    rest: Program
    row: tuple[str, ...]
    step: str
    replaced: tuple[tuple[str, str], ...]
    valid: str

    @property
    def operands(self) -> tuple[str, ...]:
        """The tensors of a row of the table, in order: those that kernels read, then those that are numbers."""
        tensors = [buffer.name for buffer in self.rest.inputs if not buffer.by_value]
        others = {*tensors, *self.row, self.step}
        return (*tensors, *(buffer.name for buffer in self.numbers.inputs if buffer.name not in others))


def emit_each(updated: UpdatedEach, *, formulas: Formulas, header: str) -> TableSource:
    """Write an update of each tensor of a table, in place.

    Args:
        updated: The update.
        formulas: Comment lines for a kernel.
        header: Comment lines for the top.

    Raises:
        NoKernel: If a kernel reads or writes at places that are not affine in its axes.
    """
    part = part_of(finish(updated.rest, "cpp"), formulas)
    replaced = {placeholder(result): placeholder(name) for result, name in updated.replaced}
    kernels = CppKernels(part.remarks, SharedFunctions(updated.rest.name), replaced)
    writer = EachWriter(updated, part, kernels)
    with plain_refusals():
        draft = "\n".join(['#include "opwright/kernel.h"', *writer.text()])
    names = allocate([draft, writer.registration("")], CPP)
    body = header + broken(names.spell(draft))
    name = f"{writer.name}_{digest(body + writer.registration(''))}"
    source = CppSource(name, f"{body}\n{broken(names.spell(writer.registration(name)))}")
    return TableSource(source, updated.operands, updated.row)


class EachWriter:
    """Writes what runs on the processor, whatever the backend; names are placeholders.

    Args:
        updated: The update.
        part: The rest, ready for emission.
        kernels: How its kernels are written.
    """

    def __init__(self, updated: UpdatedEach, part: Part, kernels: Kernels) -> None:
        self.name = part.program.name
        self.rest = part.program
        self.launcher = LauncherWriter(part, kernels, f"const {self._numbers_type}& numbers")
        self.entering = kernels.entering()
        self.inputs = buffers_of(with_placeholders(updated.numbers))
        self.columns = [placeholder(name) for name in updated.operands]
        self.tensors = [buffer for buffer in self.rest.inputs if not buffer.by_value]
        self.targets = {placeholder(result): placeholder(name) for result, name in updated.replaced}
        numbers = with_placeholders(updated.numbers)
        self.sizes = [step for step in numbers.steps if isinstance(step, Number)]
        kernel = merged_numbers(numbers)
        given = Given(
            row=[placeholder(name) for name in updated.row],
            step=placeholder(updated.step),
            operands={name: position for position, name in enumerate(self.columns)},
            variables={step.target.name for step in self.sizes},
        )
        lets = [let for let in kernel.lets if isinstance(let, Let)]
        scalars = list(zip(kernel.stores, kernel.targets, strict=True))
        passed_on = [
            self.inputs[name] for name in numbers.outputs if name in {buffer.name for buffer in numbers.inputs}
        ]
        scalars += [(Store(each.name, (), Load(each.name, (), each.dtype)), each) for each in passed_on]
        self.numbers = NumbersWriter(given, lets, scalars, (), placeholder(updated.valid))

    @property
    def _numbers_type(self) -> str:
        return f"{self.name}_numbers"

    @property
    def type(self) -> str:
        """The struct of its functions: a name that no header has, whatever the update is called."""
        return f"{self.name}_optimizer"

    def text(self) -> Iterable[str]:
        """Everything but the registration."""
        yield '#include "opwright/table_each.h"'
        yield ""
        yield "namespace opwright::emitted {"
        yield "namespace {"  # packages link sources whose structs have the same names
        yield ""
        yield f"struct {self._numbers_type} {{"
        yield from self.numbers.fields()
        yield "};"
        for definition in self.launcher.definitions(self.launcher.unchecked()):
            yield from ("", definition)
        yield ""
        yield f"struct {self.type} {{"
        yield from (f"  {line}" if line else line for line in self._functions())
        yield "};"
        yield ""
        yield "}  // namespace"
        yield ""

    def _functions(self) -> Iterable[str]:
        shares = not self.entering and not any(isinstance(step, Call) for step in self.rest.steps)
        yield f"using Numbers = {self._numbers_type};"
        yield f"static constexpr int results = {len(self.rest.outputs)};"
        yield f"static constexpr bool shares_threads = {'true' if shares else 'false'};  // by several tensors"
        yield ""
        yield from self.numbers.compute("const Tensor* given", self._sizes())
        yield ""
        yield "static bool fits(const Tensor* given) {"
        yield from (f"  {line}" for line in self.launcher.fits())
        yield "}"
        yield ""
        yield f"static bool run(const Tensor (&given)[{len(self.columns)}], const Numbers& numbers, Tensor* made) {{"
        yield from (f"  {line}" for line in self.entering)
        yield f"  return emitted::{self.name}(given, numbers, made);"
        yield "}"
        yield ""
        yield "static bool store(const Tensor* given, const Tensor* made, RandomStream random) {"
        yield f"  return {' && '.join(self._stored(*each) for each in enumerate(self.rest.outputs))};"
        yield "}"
        yield ""
        yield from self.numbers.finish(self.targets, {name: self.inputs[name].dtype for name in self.columns})

    def _sizes(self) -> Iterable[str]:
        """The sizes that numbers are computed of."""
        named = [
            f"const Size {buffer.name}_size_{dimension} = given[{position}].size({dimension});"
            for position, buffer in enumerate(self.tensors)
            for dimension in range(len(buffer.shape))
        ]
        computed = [f"const Size {step.target.name} = {spell_size(step.value)};" for step in self.sizes]
        return used([*named, *computed, *(f"{step.target.name};" for step in self.sizes)])[: -len(self.sizes) or None]

    def _stored(self, position: int, result: str) -> str:
        """Put a result where it belongs."""
        made, target = buffers_of(self.rest)[result].dtype, self.inputs[self.targets[result]].dtype
        tensors = f"given[{self.columns.index(self.targets[result])}], made[{position}]"
        if made is target:
            return f"replace_by<{CPP_TYPES[target]}>({tensors})"
        if not target.is_half:
            return f"copy_to({tensors})"
        types = f"{CPP_TYPES[made]}, {CPP_TYPES[target]}, to_{target.value}_randomly"
        return f"replace_randomly<{types}>({tensors}, random, {position})"

    def registration(self, name: str) -> str:
        """The operator, under a name."""
        ranks = {buffer.name: len(buffer.shape) for buffer in self.tensors}
        on_gpu = -1 if self.entering else 0  # numbers lie with the processor
        kinds = ", ".join(
            f"{{{TORCH_TYPES[self.inputs[name].dtype]}, {ranks.get(name, on_gpu)}}}" for name in self.columns
        )
        return "\n".join(
            [
                f"static void {self.name}_on_stack(StableIValue* stack, uint64_t, uint64_t) {{",
                f"  const ColumnKind kinds[] = {{{kinds}}};",
                f"  stack[0] = opwright::update_each_on_stack<{self.type}>(stack[0], kinds);",
                "}",
                "",
                "static const Registration registration(",
                f'    "{name}(int table) -> int",',
                f'    "{name}", {self.name}_on_stack);',
                "",
                "}  // namespace opwright::emitted",
                "",
            ]
        )

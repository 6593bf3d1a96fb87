"""emit_table: an update of tensors, element by element → C++ that runs it for a table of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opwright.codegen.allocator import allocate
from opwright.codegen.cpp.expression import CPP_TYPES
from opwright.codegen.cpp.line_breaks import broken
from opwright.codegen.cpp.loops.kernel import grain
from opwright.codegen.cpp.loops.reductions import reductions_struct
from opwright.codegen.cpp.loops.rows import kept_name
from opwright.codegen.cpp.names import CPP
from opwright.codegen.cpp.part import Formulas
from opwright.codegen.cpp.program import CppSource, digest
from opwright.codegen.cpp.table.writer import Pass, TableWriter, Updated, writer_of
from opwright.codegen.placeholders import plain_refusals


@dataclass(frozen=True, slots=True)
class TableSource:
    """An emitted update.

    Attributes:
        source: The C++. Its operator takes the address of a `Table` of include/opwright/table.h, and returns how many
            tensors it refuses; of 0 and 1 it returns how much room it needs.
        operands: The tensors of a row of the table, in order: names of inputs.
        numbers: The numbers of a row of hyper-parameters, in order: names of inputs.
    """

    source: CppSource
    operands: tuple[str, ...]
    numbers: tuple[str, ...]


def emit_table(updated: Updated, *, formulas: Formulas, header: str) -> TableSource:
    """Write an update of many tensors in place.

    Args:
        updated: The update.
        formulas: Comment lines for a kernel.
        header: Comment lines for the top.

    Raises:
        NotElementwise: If it does more than update elements.
    """
    writer, remark = writer_of(updated, formulas)
    with plain_refusals():
        draft = _text(writer, remark)
    names = allocate([draft, _registration(writer, "")], CPP)
    body = header + broken(names.spell(draft))
    name = f"{writer.name}_{digest(body)}"
    source = CppSource(name, f"{body}\n{broken(names.spell(_registration(writer, name)))}")
    return TableSource(source, updated.operands, updated.numbers)


def _text(writer: TableWriter, remark: Sequence[str]) -> str:
    body = [
        *writer.traits(),
        "",
        "struct Numbers {",
        *writer.fields(),
        "};",
        "",
        *writer.compute(),
        "",
        *_reducing(writer),
        *(f"// {line}" for line in remark),
        "static void elements(Size count, void* const* row, const Numbers& numbers, const Totals& totals,",
        "                     RandomStream random) {",
        *_over_elements(writer, writer.pass_of(writer.passes)),
        "}",
        "",
        *writer.finish(),
    ]
    return "\n".join(
        [
            '#include "opwright/table.h"',
            "",
            "namespace opwright::emitted {",
            "namespace {",
            "",
            f"struct {writer.type} {{",
            *(f"  {line}" if line and not line.startswith("#") else line for line in body),
            "};",
            "",
            "}  // namespace",
            "",
        ]
    )


def _reducing(writer: TableWriter) -> list[str]:
    """What is reduced over a tensor, and the passes that do it."""
    if not writer.passes:
        return ["using Totals = NoTotals;", ""]
    given = "Size count, void* const* row, const Numbers& numbers, const Totals& totals, Totals& part"
    lines = [*reductions_struct("Totals", writer.spellings()), ""]
    for number in range(writer.passes):
        of_pass = writer.pass_of(number)
        lines += [f"static void reduce_{number}({given}) {{", *_over_elements(writer, of_pass), "}", ""]
    calls = [
        f"  {'if (pass == ' + str(number) + ') ' if number + 1 < writer.passes else ''}"
        f"return reduce_{number}(count, row, numbers, totals, part);"
        for number in range(writer.passes)
    ]
    return [*lines, f"static void reduce(int pass, {given}) {{", *calls, "}", ""]


def _over_elements(writer: TableWriter, of_pass: Pass) -> list[str]:
    """The body of a function that goes over elements; sums of a few thousand are kept in local accumulators."""
    spellings = writer.spellings()
    own = {reduction.name: spellings[reduction.name] for reduction in of_pass.reductions}
    names = {reduction.name: kept_name(reduction) for reduction in of_pass.reductions}
    clauses = [f" reduction({spelling.clause} : {names[name]})" for name, spelling in own.items()]
    return [
        *writer.before(of_pass),
        *(f"  {spelling.kept_as} {names[name]} = {spelling.start};" for name, spelling in own.items()),
        f"#pragma omp simd{''.join(clauses)}",
        "  for (Size j = 0; j < count; ++j) {",
        *writer.element(of_pass),
        *(f"    {line}" for r in of_pass.reductions for line in writer.reduced(r, names[r.name])),
        "  }",
        *(f"  {spelling.step.format(f'part.{name}', names[name])}" for name, spelling in own.items()),
    ]


def _registration(writer: TableWriter, name: str) -> str:
    """The operator, under a name."""
    sizes = ", ".join(f"sizeof({CPP_TYPES[buffer.dtype]})" for buffer in writer.operands)
    return "\n".join(
        [
            f"static void {writer.name}_on_stack(StableIValue* stack, uint64_t, uint64_t) {{",
            f"  const Size item_bytes[] = {{{sizes}}};",
            f"  const Size grain = {grain(writer.update.kernel)};",
            f"  stack[0] = opwright::update_on_stack<{writer.type}>(stack[0], item_bytes, grain);",
            "}",
            "",
            "static const Registration registration(",
            f'    "{name}(int table) -> int",',
            f'    "{name}", {writer.name}_on_stack);',
            "",
            "}  // namespace opwright::emitted",
            "",
        ]
    )

"""emit_table: an update of tensors, element by element → C++ that runs it for a table of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opwright.codegen.allocator import allocate
from opwright.codegen.cpp.expression import CPP_TYPES
from opwright.codegen.cpp.line_breaks import broken
from opwright.codegen.cpp.loops.kernel import grain
from opwright.codegen.cpp.names import CPP
from opwright.codegen.cpp.part import Formulas
from opwright.codegen.cpp.program import CppSource, digest
from opwright.codegen.cpp.table.writer import TableWriter, Updated, writer_of
from opwright.codegen.placeholders import plain_refusals


@dataclass(frozen=True, slots=True)
class TableSource:
    """An emitted update.

    Attributes:
        source: The C++. Its operator takes the address of a `Table` of include/opwright/table.h, and returns how many
            tensors it refuses; of 0 it returns how much room it needs for each tensor.
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
        f"static constexpr bool has_scalars = {'true' if writer.has_scalars else 'false'};",
        "",
        "struct Numbers {",
        *writer.fields(),
        "};",
        "",
        *writer.compute(),
        "",
        *(f"// {line}" for line in remark),
        "static void elements(Size count, void* const* row, const Numbers& numbers, RandomStream random) {",
        *writer.kept(),
        *writer.pointers(),
        "#pragma omp simd",
        "  for (Size j = 0; j < count; ++j) {",
        *writer.element(),
        "  }",
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
            f"struct {writer.name} {{",
            *(f"  {line}" if line and not line.startswith("#") else line for line in body),
            "};",
            "",
            "}  // namespace",
            "",
        ]
    )


def _registration(writer: TableWriter, name: str) -> str:
    """The operator, under a name."""
    sizes = ", ".join(f"sizeof({CPP_TYPES[buffer.dtype]})" for buffer in writer.operands)
    return "\n".join(
        [
            f"static void {writer.name}_on_stack(StableIValue* stack, uint64_t, uint64_t) {{",
            f"  const Size item_bytes[] = {{{sizes}}};",
            f"  stack[0] = update_on_stack<{writer.name}>(stack[0], item_bytes, {grain(writer.update.kernel)});",
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

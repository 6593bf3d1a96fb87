"""emit_cuda_table: an update of tensors, element by element → CUDA that runs it for a table of tensors in one launch.

The processor computes what is the same for all elements of a tensor, as it does for its own kernels, and tests whether
the update is valid; the GPU reads the results from the table. States without dimensions stay with the processor. Each
thread computes what is computed of numbers that are on the GPU, such as the factor of gradients.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwright.codegen.allocator import allocate
from opwright.codegen.cpp.line_breaks import broken
from opwright.codegen.cpp.loops.reductions import reductions_struct
from opwright.codegen.cpp.names import CPP
from opwright.codegen.cpp.part import Formulas
from opwright.codegen.cpp.program import digest
from opwright.codegen.cpp.table.writer import Pass, TableWriter, Updated, writer_of
from opwright.codegen.cuda.functions import CUDA
from opwright.codegen.cuda.program import CudaSource
from opwright.codegen.placeholders import plain_refusals

LAUNCH = "launch"
"""What is behind the name of the operator that launches the kernel; the one without it computes the numbers."""

_THREADS = 256


def emit_cuda_table(updated: Updated, *, formulas: Formulas, header: str) -> CudaSource:
    """Write an update of many tensors in place.

    Its operator takes the address of a `Table` of include/opwright/table.h, computes the numbers and returns how many
    tensors it refuses; of 0 it returns how much room it needs for each tensor. A second one takes the address, a
    copy of the table on the GPU and room for what is reduced, and updates all tensors.

    Args:
        updated: The update.
        formulas: Comment lines for a kernel.
        header: Comment lines for the top.

    Raises:
        NotElementwise: If it does more than update elements.
    """
    writer, remark = writer_of(updated, formulas, CUDA)
    with plain_refusals():
        device, host = _device(writer, remark), _host(writer)
    names = allocate([device, host, _registration(writer, "")], CPP)
    kernels, launcher = (header + broken(names.spell(text)) for text in (device, host))
    name = f"{writer.name}_{digest(kernels + launcher)}"
    return CudaSource(name, kernels, f"{launcher}\n{broken(names.spell(_registration(writer, name)))}")


def _numbers(writer: TableWriter) -> list[str]:
    """The same for host and device."""
    return [f"struct {writer.name}_numbers {{", *writer.fields(), "};"]


def _device(writer: TableWriter, remark: Sequence[str]) -> str:
    name = writer.name
    place = "const TableOnDevice& table, int64_t tensor, int64_t first, int64_t count"
    body = [
        f"using Numbers = {name}_numbers;",
        *_totals(writer),
        "",
        *_reducing(writer, place),
        *(f"// {line}" for line in remark),
        f"__device__ static void elements({place},",
        "                                const Numbers& numbers, const Totals& totals, RandomStream random) {",
        *_over_elements(writer, writer.pass_of(writer.passes)),
        "}",
    ]
    return "\n".join(
        [
            '#include "opwright/cuda/table.h"',
            "",
            "namespace opwright::emitted {",
            "",
            *_numbers(writer),
            "",
            f"struct {writer.type} {{",
            *(f"  {line}" if line else line for line in body),
            "};",
            "",
            f'extern "C" __global__ void __launch_bounds__({_THREADS})',
            f"{name}_update(const __grid_constant__ TableOnDevice given) {{",
            f"  update_elements<{writer.type}>(given);",
            "}",
            "",
            *(line for kernel in _reducing_kernels(writer) for line in _entry(writer, kernel)),
            "}  // namespace opwright::emitted",
            "",
        ]
    )


def _totals(writer: TableWriter) -> list[str]:
    """What is reduced over a tensor; the same for host and device."""
    if not writer.passes:
        return ["using Totals = NoTotals;"]
    return ["", *reductions_struct("Totals", writer.spellings(), "OPWRIGHT_INLINE ")]


def _reducing(writer: TableWriter, place: str) -> list[str]:
    """The passes that reduce elements, by all threads of a block; each thread has a part."""
    given = f"{place},\n                              const Numbers& numbers, const Totals& totals, Totals& part"
    lines: list[str] = []
    for number in range(writer.passes):
        opening = f"__device__ static void reduce_{number}({given}) {{"
        lines += [*opening.split("\n"), *_over_elements(writer, writer.pass_of(number)), "}", ""]
    if lines:
        opening = f"__device__ static void reduce(int64_t pass, {given}) {{"
        lines += [*opening.split("\n"), *_choices(writer), "}", ""]
    return lines


def _choices(writer: TableWriter) -> list[str]:
    return [
        f"  if (pass == {number}) reduce_{number}(table, tensor, first, count, numbers, totals, part);"
        for number in range(writer.passes)
    ]


def _over_elements(writer: TableWriter, of_pass: Pass) -> list[str]:
    """The body of a function that goes over elements."""
    rows = [
        f"element_of(table, {position}, tensor, {writer.offset_of(buffer, 'first')})"
        for position, buffer in enumerate(writer.operands)
    ]
    return [
        f"  void* const row[] = {{{', '.join(rows)}}};",
        *writer.before(of_pass),
        "  for (int64_t j = threadIdx.x; j < count; j += blockDim.x) {",
        *writer.element(of_pass),
        *(f"    {line}" for r in of_pass.reductions for line in writer.reduced(r, f"part.{r.name}")),
        "  }",
    ]


def _reducing_kernels(writer: TableWriter) -> tuple[str, ...]:
    """What is launched for each pass, in this order, before the update."""
    return ("reduce_pieces", "combine_pieces") if writer.passes else ()


def _entry(writer: TableWriter, kernel: str) -> list[str]:
    return [
        f'extern "C" __global__ void __launch_bounds__({_THREADS})',
        f"{writer.name}_{kernel}(const __grid_constant__ TableOnDevice given) {{",
        f"  {kernel}<{writer.type}>(given);",
        "}",
        "",
    ]


def _host(writer: TableWriter) -> str:
    name = writer.name
    body = [
        *writer.traits(),
        f"using Numbers = {name}_numbers;",
        *_totals(writer),
        "",
        *writer.compute(),
        "",
        *writer.finish(),
    ]
    return "\n".join(
        [
            '#include "opwright/cuda/table_launch.h"',
            "",
            "namespace opwright::emitted {",
            "namespace {",
            "",
            *_numbers(writer),
            "",
            f"struct {writer.type} {{",
            *(f"  {line}" if line else line for line in body),
            "};",
            "",
            f"cuda::Kernel {name}_kernels[] = {{",
            *(f'    {{kernel_images, "{name}_{kernel}"}},' for kernel in ("update", *_reducing_kernels(writer))),
            "};",
            "",
            "}  // namespace",
            "",
        ]
    )


def _registration(writer: TableWriter, name: str) -> str:
    """The operators, under a name."""
    operands = len(writer.operands)
    return "\n".join(
        [
            f"static void {writer.name}_on_stack(StableIValue* stack, uint64_t, uint64_t) {{",
            f"  stack[0] = opwright::numbers_on_stack<{writer.type}, {operands}>(stack[0]);",
            "}",
            "",
            f"static void {writer.name}_{LAUNCH}_on_stack(StableIValue* stack, uint64_t, uint64_t) {{",
            "  const Tensor given[] = {take(stack[1]), take(stack[2])};",
            "  const cuda::Call call_on_device(given);",
            "  const Table& table = *reinterpret_cast<const Table*>(stack[0]);",
            f"  stack[0] = pass(cuda::launch_table<{writer.type}, {operands}>({writer.name}_kernels, table, given));",
            "}",
            "",
            "static const Registration registration(",
            f'    "{name}(int table) -> int",',
            f'    "{name}", {writer.name}_on_stack);',
            "",
            f"static const Registration {LAUNCH}_registration(",
            f'    "{name}_{LAUNCH}(int table, Tensor room, Tensor totals) -> bool",',
            f'    "{name}_{LAUNCH}", {writer.name}_{LAUNCH}_on_stack);',
            "",
            "}  // namespace opwright::emitted",
            "",
        ]
    )

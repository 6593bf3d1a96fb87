"""emit_cuda_table: an update of tensors, element by element → CUDA that runs it for a table of tensors in one launch.

The processor computes what is the same for all elements of a tensor, as it does for its own kernels, and tests whether
the update is valid; the GPU reads the results from the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwright.codegen.allocator import allocate
from opwright.codegen.cpp.line_breaks import broken
from opwright.codegen.cpp.names import CPP
from opwright.codegen.cpp.part import Formulas
from opwright.codegen.cpp.program import digest
from opwright.codegen.cpp.table.writer import TableWriter, Updated, writer_of
from opwright.codegen.cuda.functions import CUDA
from opwright.codegen.cuda.program import CudaSource
from opwright.codegen.placeholders import plain_refusals
from opwright.errors import NotElementwise

LAUNCH = "launch"
"""What is behind the name of the operator that launches the kernel; the one without it computes the numbers."""

_THREADS = 256


def emit_cuda_table(updated: Updated, *, formulas: Formulas, header: str) -> CudaSource:
    """Write an update of many tensors in place.

    Its operator takes the address of a `Table` of include/opwright/table.h, computes the numbers and returns how many
    tensors it refuses; of 0 it returns how much room it needs for each tensor. A second one takes the address and a
    copy of the table on the GPU, and updates all tensors.

    Args:
        updated: The update.
        formulas: Comment lines for a kernel.
        header: Comment lines for the top.

    Raises:
        NotElementwise: If it does more than update elements, or reads numbers from the memory of the GPU.
    """
    writer, remark = writer_of(updated, formulas, CUDA)
    if writer.has_scalars or writer.results:
        raise NotElementwise("it computes with states without dimensions, so the processor would have to wait for them")
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
    rows = [
        f"element_of(table, {position}, tensor, first * {buffer.dtype.bytes})"
        for position, buffer in enumerate(writer.operands)
    ]
    body = [
        f"using Numbers = {name}_numbers;",
        "",
        *(f"// {line}" for line in remark),
        "__device__ static void elements(const TableOnDevice& table, int64_t tensor, int64_t first, int64_t count,",
        "                                const Numbers& numbers, RandomStream random) {",
        f"  void* const row[] = {{{', '.join(rows)}}};",
        *writer.kept(),
        *writer.pointers(),
        "  for (int64_t j = threadIdx.x; j < count; j += blockDim.x) {",
        *writer.element(),
        "  }",
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
            f"struct {name} {{",
            *(f"  {line}" if line else line for line in body),
            "};",
            "",
            f'extern "C" __global__ void __launch_bounds__({_THREADS})',
            f"{name}_update(const __grid_constant__ TableOnDevice given) {{",
            f"  update_elements<{name}>(given);",
            "}",
            "",
            "}  // namespace opwright::emitted",
            "",
        ]
    )


def _host(writer: TableWriter) -> str:
    name = writer.name
    body = [
        f"using Numbers = {name}_numbers;",
        "static constexpr bool has_scalars = false;",
        "",
        *writer.compute(),
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
            f"struct {name} {{",
            *(f"  {line}" if line else line for line in body),
            "};",
            "",
            f'cuda::Kernel {name}_kernel = {{kernel_images, "{name}_update"}};',
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
            f"  stack[0] = numbers_on_stack<{writer.name}, {operands}>(stack[0]);",
            "}",
            "",
            f"static void {writer.name}_{LAUNCH}_on_stack(StableIValue* stack, uint64_t, uint64_t) {{",
            "  const Tensor given[] = {take(stack[1])};",
            "  const cuda::Call call_on_device(given);",
            "  const Table& table = *reinterpret_cast<const Table*>(stack[0]);",
            f"  stack[0] = pass(cuda::launch_table({writer.name}_kernel, table, given[0], {operands}));",
            "}",
            "",
            "static const Registration registration(",
            f'    "{name}(int table) -> int",',
            f'    "{name}", {writer.name}_on_stack);',
            "",
            f"static const Registration {LAUNCH}_registration(",
            f'    "{name}_{LAUNCH}(int table, Tensor room) -> bool",',
            f'    "{name}_{LAUNCH}", {writer.name}_{LAUNCH}_on_stack);',
            "",
            "}  // namespace opwright::emitted",
            "",
        ]
    )

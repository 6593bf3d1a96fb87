"""emit_cuda_each: an update of tensors by any kernels → CUDA that runs it for each tensor of a table.

The processor computes what is computed of numbers alone, as for its own kernels; launches are given the results.
"""

from __future__ import annotations

from opwright.codegen.allocator import allocate
from opwright.codegen.cpp.line_breaks import broken
from opwright.codegen.cpp.names import CPP
from opwright.codegen.cpp.part import Formulas
from opwright.codegen.cpp.program import digest
from opwright.codegen.cpp.table.each import EachWriter, UpdatedEach
from opwright.codegen.cuda.program import HOST_HEADER, CudaKernels, CudaSource, device_text, parts_for_gpus
from opwright.codegen.placeholders import plain_refusals


def emit_cuda_each(updated: UpdatedEach, *, formulas: Formulas, header: str) -> CudaSource:
    """Write an update of each tensor of a table, in place.

    Args:
        updated: The update.
        formulas: Comment lines for a kernel.
        header: Comment lines for the top of both sources.

    Raises:
        NoKernel: As `emit_cuda`.
    """
    with plain_refusals():
        (part,) = parts_for_gpus(updated.rest, formulas)
        kernels = CudaKernels(part)
        writer = EachWriter(updated, part, kernels)
        draft = "\n".join([f'#include "{HOST_HEADER}"', *writer.text()])
    names = allocate([*kernels.device_texts, draft, writer.registration("")], CPP)
    device = device_text(kernels.device_texts, names, header)
    body = header + broken(names.spell(draft))
    name = f"{writer.name}_{digest(device + body + writer.registration(''))}"
    return CudaSource(name, device, f"{body}\n{broken(names.spell(writer.registration(name)))}")

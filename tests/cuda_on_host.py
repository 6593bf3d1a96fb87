"""Operators whose CUDA kernels run on the processor: the launcher and the kernels are one library for CPU tensors.

What serves calls is what a GPU would run, but for the driver. Operators that are derived inside `cuda_kernels()` are
built so, and everything that asks a kernel for results asks these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
import torch

from opwright.codegen.cuda.program import emit_cuda
from opwright.ir.program import Program
from opwright.operators import stages
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.gpu.nvrtc import compile_cuda, find_nvrtc
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, header_digests
from opwright.toolchain.source import Source
from opwright.toolchain.storage.records import canonical_json, digest
from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler
from tests.suite.kept_libraries import another_cache, kept

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


def source_on_host(program: Program) -> Source:
    """The device's source and the launcher's, one after the other, for a C++ compiler."""
    emitted = emit_cuda(program)
    host = emitted.host.replace("opwright::emitted", "opwright::launcher")
    images = "const opwright::cuda::Image opwright::kernel_images[] = {{}};\n"
    opening = '#define OPWRIGHT_CUDA_ON_HOST\n#include "opwright/cuda/host_execution.h"\n'
    return Source(emitted.name, f"{opening}{emitted.device}\n{host}\n{images}")


def machine_code(program: Program, architecture: str) -> bytes:
    """What NVRTC makes of a Program's kernels, kept between runs; nothing if it has none."""
    device = emit_cuda(program).device
    if not device:
        return b""
    facts = (device, architecture, header_digests(INCLUDE_DIRECTORY), str(find_nvrtc()))
    return kept(digest(canonical_json(facts)), lambda: compile_cuda(device, architecture, INCLUDE_DIRECTORY))


@contextmanager
def cuda_kernels() -> Iterator[list[Program]]:
    """Operators derived in this context have CUDA kernels that run on the processor; gives the Programs of these."""
    programs: list[Program] = []

    def source(program: Program, *_: object) -> Source:
        programs.append(program)
        return source_on_host(program)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "_source", source)
        yield programs


def settings_on_host() -> Settings:
    """Settings with records of their own, as these are of other kernels."""
    compiler = quick_compiler(f"{OPTIMIZING_NOTHING} -fexceptions")
    return Settings(another_cache(), compiler=compiler, notify=False, tape="off")


def run_on_host(program: Program, tensors: Sequence[torch.Tensor], settings: Settings) -> list[torch.Tensor]:
    """Build a Program with its kernels on the processor, and run it."""
    source = source_on_host(program)
    (library,) = build((source,), settings)
    torch.ops.load_library(str(library))
    made = getattr(torch.ops.opwright_kernels, source.name)(*tensors)
    return [made] if isinstance(made, torch.Tensor) else list(made)

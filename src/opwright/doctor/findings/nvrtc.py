"""nvrtc: whether CUDA kernels can be compiled, which needs neither a GPU nor a toolkit."""

from __future__ import annotations

from opwright.doctor.finding import Finding
from opwright.errors import OpwrightError
from opwright.settings import Settings
from opwright.toolchain.gpu.nvrtc import Nvrtc, compile_cuda, find_nvrtc

_NAME = "NVRTC"
_KERNEL = 'extern "C" __global__ void trial(int* answer) { *answer = 42; }\n'


def nvrtc(settings: Settings) -> Finding:
    """Compile a kernel for the newest architecture that NVRTC knows."""
    try:
        found = find_nvrtc(settings.cuda_home)
        compile_cuda(_KERNEL, f"sm_{_usual(found)}", nvrtc=found)
    except OpwrightError as refusal:
        return Finding(_NAME, "limited", f"{refusal.fact}; no CUDA kernels", "pip install nvidia-cuda-nvrtc")
    version = ".".join(map(str, found.version))
    range_of = f"{found.architectures[0]} to {found.architectures[-1]}"
    detail = f"{version} at {found.path}; compiles for {range_of}"
    if found.headers is None:
        return Finding(_NAME, "limited", f"{detail}; without cuda_fp16.h", "pip install nvidia-cuda-runtime")
    return Finding(_NAME, "works", detail)


def _usual(found: Nvrtc) -> int:
    """Return an architecture to compile for."""
    return 90 if 90 in found.architectures else found.architectures[-1]

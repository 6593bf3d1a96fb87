"""Whether the CUDA of an ejected project compiles, without a GPU and without nvcc."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch

from opwright.errors import CudaCompilerMissing
from opwright.toolchain.gpu.nvrtc import SHIPPED_FLAGS, compile_cuda, find_nvrtc


def assert_cuda_compiles(directory: Path) -> None:
    """NVRTC takes the kernels, g++ what launches them, and the names in one are those in the other."""
    try:
        nvrtc = find_nvrtc()
    except CudaCompilerMissing as missing:
        pytest.skip(missing.fact)
    csrc = directory / "csrc"
    if not (csrc / "cuda").exists():
        return
    for kernels in sorted(csrc.glob("cuda/*.cu")):
        image = compile_cuda(kernels.read_text(), "sm_90", csrc, SHIPPED_FLAGS, name=kernels.name, nvrtc=nvrtc)
        header = next(path for path in (kernels.with_suffix(".h"), _launcher(kernels)) if path.exists())
        declared = re.findall(r'extern "C" void (\w+)\(', header.read_text())
        assert declared
        assert all(name.encode() in image for name in declared)
    folders = (csrc, Path(__file__).parent / "cuda_runtime", Path(torch.__file__).parent / "include")
    command = ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", "-Wno-parentheses", "-Wno-unused-variable"]
    command += ["-DTORCH_TARGET_VERSION=0x020b000000000000", *(f"-I{folder}" for folder in folders)]
    subprocess.run([*command, *sorted(csrc.glob("cuda/*.cpp"))], check=True)


def _launcher(kernels: Path) -> Path:
    return kernels.with_name(f"{kernels.stem}_launch.cpp")

"""cuda_toolkit: whether a user's own CUDA sources can be built."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from opwright.doctor.finding import Finding
from opwright.errors import OpwrightError
from opwright.settings import Settings
from opwright.toolchain.gpu.toolkit import CudaToolkit, find_cuda_toolkit

_NAME = "CUDA toolkit"


def cuda_toolkit(settings: Settings) -> Finding:
    """Find the toolkit, and whether its version fits PyTorch."""
    try:
        toolkit = find_cuda_toolkit(settings)
    except OpwrightError as refusal:
        packages = "nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-cccl"
        remedy = "unset CUDA_HOME CUDA_PATH" if settings.cuda_home else f"pip install {packages}"
        return Finding(_NAME, "limited", f"{refusal.fact}; opwright.load builds no .cu sources", remedy)
    detail = f"{toolkit.version} at {toolkit.root}{_by_way_of(toolkit)}"
    if torch.version.cuda is None:
        return Finding(
            _NAME, "limited", f"{detail}; this PyTorch is built without CUDA, so .cu sources cannot be linked"
        )
    if toolkit.version.split(".")[0] != torch.version.cuda.split(".")[0]:
        complaint = f"{detail} does not fit PyTorch, which is built for CUDA {torch.version.cuda}"
        return Finding(_NAME, "limited", complaint, f"export CUDA_HOME=/path/to/cuda-{torch.version.cuda}")
    return Finding(_NAME, "works", detail)


def _by_way_of(toolkit: CudaToolkit) -> str:
    """The path that nvcc is called by, if it is not in the toolkit; torch's own guess is then wrong."""
    if shutil.which("nvcc") != str(toolkit.nvcc) or toolkit.nvcc.parent == toolkit.root / "bin":
        return ""
    guess = Path(toolkit.nvcc).parents[1]
    return f" (called as {toolkit.nvcc}; torch.utils.cpp_extension would take {guess} for the toolkit)"

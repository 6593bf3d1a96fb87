"""torch_build: the version of PyTorch, and whether it has the headers that kernels need."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from opwright.doctor.finding import Finding
from opwright.settings import Settings

_OLDEST = (2, 11)
_HEADER = "include/torch/csrc/stable/library.h"


def torch_build(settings: Settings) -> Finding:
    """Find what PyTorch is built for."""
    version = str(torch.__version__)
    cuda = f"CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA"
    abi = "" if torch.compiled_with_cxx11_abi() else ", with the C++ ABI from before C++11"
    detail = f"{version}, {cuda}{abi}; Python {platform.python_version()}"
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        newer = f"torch>={'.'.join(map(str, _OLDEST))}"
        return Finding("PyTorch", "broken", f"{detail}; opwright needs {newer}", f"pip install '{newer}'")
    if not (Path(torch.__file__).parent / _HEADER).exists():
        remedy = "pip install --force-reinstall torch"
        return Finding("PyTorch", "broken", f"{detail}; its C++ headers are missing: {_HEADER}", remedy)
    return Finding("PyTorch", "works", detail)

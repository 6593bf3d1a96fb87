"""Compiler flags for the PyTorch and the Python of a library."""

from __future__ import annotations

import platform
import sysconfig
from pathlib import Path

import torch

TORCH = Path(torch.__file__).parent
STANDARD = "c++20" if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 12) else "c++17"
"""The standard that its headers are written in."""

# Where headers change only when something is installed.
SYSTEM_FOLDERS = (Path("/usr/include"), Path("/usr/lib"), Path("/usr/local/include"))


def include_folders(*more: Path) -> tuple[Path, ...]:
    """Return where the headers of torch are, of something else, and of Python."""
    headers = TORCH / "include"
    return (headers, headers / "torch/csrc/api/include", *more, Path(sysconfig.get_path("include")))


def library_flags(*names: str) -> tuple[str, ...]:
    """Return what links libraries of torch, beside c10, torch and torch_cpu."""
    return (f"-L{TORCH / 'lib'}", *(f"-l{name}" for name in ("c10", "torch_cpu", "torch", *names)))


def against_torch(*folders: Path) -> tuple[str, ...]:
    """Return where to find headers, the given folders first, and what a library of Python's is linked to."""
    return (*(f"-I{folder}" for folder in (*folders, *include_folders())), *library_flags("torch_python"))


def python_facts() -> dict[str, str]:
    """Return what an extension module depends on, fit for JSON."""
    return {"python": platform.python_version(), "abi": str(sysconfig.get_config_var("SOABI"))}

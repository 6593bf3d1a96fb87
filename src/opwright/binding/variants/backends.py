"""Backends: C++ on the processor, CUDA on a GPU, and whether each is available here."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any, Literal

import torch

from opwright.errors import NoKernel, RungMissing
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.gpu.nvcc import nvcc_path
from opwright.toolchain.gpu.nvrtc import find_nvrtc

Backend = Literal["cpp", "cuda"]
BACKENDS: tuple[Backend, ...] = ("cpp", "cuda")


def backend_for(arguments: Sequence[Any], settings: Settings) -> Backend:
    """Return the backend for these arguments.

    Raises:
        NoKernel: If there are none for such tensors.
    """
    tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
    devices = {tensor.device for tensor in tensors}
    for tensor in tensors:
        if tensor.device.type not in ("cpu", "cuda") or tensor.layout != torch.strided:
            dense = tensor.layout == torch.strided
            raise NoKernel(
                f"there are no kernels for {tensor.layout} tensors on {tensor.device.type} yet",
                hint="move it to 'cpu' or 'cuda' with .to(...)" if dense else "convert it with .to_dense()",
            )
    if len(devices) > 1:
        named = ", ".join(sorted(map(str, devices)))
        raise NoKernel(f"its tensors are on several devices: {named}", hint="move them to one device with .to(...)")
    on_gpu = any(device.type == "cuda" for device in devices)
    return "cuda" if on_gpu or settings.cuda_on_host else "cpp"


def examine(backend: Backend, settings: Settings) -> None:
    """Look for what a backend needs to build and run kernels.

    Raises:
        CompilerMissing: There is no C++ compiler.
        CudaCompilerMissing: There is no compiler of CUDA kernels.
        NoKernel: They are for a GPU, and there is none; or this is not Linux.
    """
    if platform.system() != "Linux":
        raise NoKernel(f"kernels are linked as Linux does it, and this is {platform.system()}")
    find_compiler(settings)
    if backend == "cpp" and settings.cuda_on_host:
        raise NoKernel(
            "OPWRIGHT_CUDA_ON_HOST has CUDA kernels serve tensors on the processor", hint="unset OPWRIGHT_CUDA_ON_HOST"
        )
    if backend == "cpp" or settings.cuda_on_host:
        return
    if torch.version.cuda is None:
        raise NoKernel("this PyTorch is built without CUDA", hint="install a PyTorch that is built with CUDA")
    if not torch.cuda.is_available():
        raise NoKernel("there is no NVIDIA GPU, or no driver for it", hint="see whether nvidia-smi finds the GPU")
    if settings.cuda_compiler:
        nvcc_path(settings.cuda_compiler)
    else:
        find_nvrtc(settings.cuda_home)


def devices_of(backend: Backend, settings: Settings) -> tuple[str, ...]:
    """The kinds of devices that a backend serves."""
    if backend == "cuda":
        return ("cpu", "cuda") if settings.cuda_on_host else ("cuda",)
    return () if settings.cuda_on_host else ("cpu",)


def refuse_another(wanted: Backend, served: str | None) -> None:
    """Refuse a call that is pinned to one backend and was served by the other.

    Raises:
        RungMissing: If it was.
    """
    if served in BACKENDS and served != wanted:
        raise RungMissing(
            f"the rung '{wanted}' has no kernels for tensors on this device; '{served}' has",
            hint=f"call .on('{served}'), or move the tensors to the other device",
        )

"""A kernel in CUDA C++: compiled by NVRTC, launched through the driver on torch's stream, without a CUDA toolkit.

Compiling needs no GPU either. The author's `__global__` function, which may be a template, becomes a device function
that an `extern "C"` entry calls, so that the driver can look the entry up by name.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import torch

from opwright.errors import CudaCompilerMissing, NoKernel
from opwright.handwritten.kernels.geometry import Grid
from opwright.handwritten.kernels.instance import Instance
from opwright.handwritten.kernels.kernel import ENTRY, entry_call, entry_parameters
from opwright.handwritten.kernels.roles import Contract
from opwright.handwritten.sources import Sources
from opwright.toolchain.diagnostics import at_the_authors_line
from opwright.toolchain.gpu.nvrtc import FLAGS, compile_cuda
from opwright.toolchain.recipe import INCLUDE_DIRECTORY

_AS_DEVICE_FUNCTIONS = "#undef __global__\n#define __global__ __device__\n#define __launch_bounds__(...)"
_ANY_ARCHITECTURE = "sm_90"
_AS_KERNELS = "#undef __global__\n#define __global__ __attribute__((global))\n#undef __launch_bounds__"
# NVRTC has no standard headers; these are what sources take from <cstdint>.
_INTEGERS = "\n".join(
    f"typedef {kind} {name};"
    for name, kind in {
        "int8_t": "signed char",
        "uint8_t": "unsigned char",
        "int16_t": "short",
        "int32_t": "int",
        "int64_t": "long long",
    }.items()
)


class CudaLoader:
    """Compiles and loads instances of a kernel.

    Args:
        contract: What the kernel takes.
        sources: The author's.
    """

    def __init__(self, contract: Contract, sources: Sources) -> None:
        self._contract = contract
        self._sources = sources

    def __call__(self, instance: Instance, kinds: Sequence[Any]) -> Launched:
        """An instance that compiles when it is first launched, for the GPU that it is launched on."""
        return Launched(self, instance, kinds)

    def examine(self) -> None:
        """Compile the sources, and look for a GPU.

        Raises:
            CudaCompilerMissing, BuildFailed: As `compile`.
            NoKernel: If there is no GPU.
        """
        if torch.cuda.is_available():
            return
        for declaration in self._contract.declarations:
            self.compile(Instance(declaration, dict.fromkeys(declaration.type_parameters, "float")), _ANY_ARCHITECTURE)
        raise NoKernel(f"{self._contract.function} compiles for {_ANY_ARCHITECTURE}, and there is no GPU here")

    def compile(self, instance: Instance, architecture: str) -> bytes:
        """Compile an instance, which needs no GPU.

        Args:
            instance: The instance.
            architecture: Such as "sm_90".

        Raises:
            CudaCompilerMissing: If there is no NVRTC.
            BuildFailed: If it refuses the sources, with the line of the first error.
        """
        flags = (*FLAGS, *(flag.replace("-iquote", "-I") for flag in self._sources.search_path()), *self._sources.flags)
        with at_the_authors_line():
            return compile_cuda(self._text(instance), architecture, INCLUDE_DIRECTORY, flags)

    def _text(self, instance: Instance) -> str:
        head = f"{_INTEGERS}\n{_AS_DEVICE_FUNCTIONS}"
        return "\n".join([head, *self._sources.texts(), _AS_KERNELS, self.entry(instance)])

    def entry(self, instance: Instance) -> str:
        """A kernel that is no template, with the parameters of an instance."""
        return (
            f'#line 1 "the entry of {self._contract.function}, written by opwright"\n'
            f'extern "C" __global__ void {ENTRY}({entry_parameters(instance)}) {{\n'
            f"  {entry_call(self._contract, instance)};\n}}\n"
        )


class Launched:
    """One instance.

    Args:
        loader: Compiles it.
        instance: Which one.
        kinds: The types of its parameters.
    """

    def __init__(self, loader: CudaLoader, instance: Instance, kinds: Sequence[Any]) -> None:
        self._loader = loader
        self._instance = instance
        self._kinds = kinds
        self._functions: dict[int, ctypes.c_void_p] = {}

    def __call__(self, values: Sequence[Any], grid: Grid | None, device: torch.device) -> None:
        """Launch it on a device, on torch's current stream."""
        assert grid is not None
        driver = _driver()
        with torch.cuda.device(device):
            index = torch.cuda.current_device()
            if index not in self._functions:
                major, minor = torch.cuda.get_device_capability(index)
                self._functions[index] = driver.load(self._loader.compile(self._instance, f"sm_{major}{minor}"))
            given = [kind(value) for kind, value in zip(self._kinds, values, strict=True)]
            driver.launch(self._functions[index], grid, torch.cuda.current_stream().cuda_stream, given)


class Driver:
    """The functions of NVIDIA's driver that load and launch kernels.

    Args:
        name: The name of the driver's library.
    """

    def __init__(self, name: str = "libcuda.so.1") -> None:
        self._name = name

    def load(self, cubin: bytes) -> ctypes.c_void_p:
        """Load machine code into the current context; returns the entry."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._demand(self._library.cuModuleLoadData(ctypes.byref(module), cubin), "loading a kernel")
        status = self._library.cuModuleGetFunction(ctypes.byref(function), module, ENTRY.encode())
        self._demand(status, "finding a kernel")
        return function

    def launch(self, function: ctypes.c_void_p, grid: Grid, stream: int, given: Sequence[Any]) -> None:
        """Launch a kernel; ctypes holds its parameters."""
        places = (ctypes.c_void_p * len(given))(*[ctypes.addressof(value) for value in given])
        blocks_and_threads = [ctypes.c_uint(number) for number in grid]
        status = self._library.cuLaunchKernel(
            function, *blocks_and_threads, ctypes.c_uint(0), ctypes.c_void_p(stream), places, None
        )
        self._demand(status, f"launching a grid of {grid}")

    @cached_property
    def _library(self) -> Any:
        try:
            return ctypes.CDLL(self._name)
        except OSError as error:
            raise CudaCompilerMissing(f"NVIDIA's driver is not installed here: {error}") from None

    def _demand(self, status: int, what: str) -> None:
        if status != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(text))
            raise NoKernel(f"{what} failed: {(text.value or b'unknown error').decode()} ({status})")


@cache
def _driver() -> Driver:
    return Driver()

"""A kernel in CUDA C++: compiled by NVRTC, launched through the driver on torch's stream, without a CUDA toolkit.

Compiling needs no GPU either. The author's `__global__` function, which may be a template, becomes a device function
that an `extern "C"` entry calls, so that the driver can look the entry up by name.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
from opwright.toolchain.process.forks import Lock
from opwright.toolchain.recipe import INCLUDE_DIRECTORY

_AS_DEVICE_FUNCTIONS = "#undef __global__\n#define __global__ __device__\n#define __launch_bounds__(...)"
_ANY_ARCHITECTURE = "sm_90"
_RELAXED = 2  # the mode of captures in which a thread may do what is no part of them
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
        self._lock = Lock()

    def __call__(self, values: Sequence[Any], grid: Grid | None, device: torch.device) -> None:
        """Launch it on a device, on torch's current stream."""
        assert grid is not None
        driver = _driver()
        index = torch.cuda.current_device() if device.index is None else device.index
        stream = torch.cuda.current_stream(index).cuda_stream
        with driver.current(index):
            function = self._functions.get(index) or self._load(driver, index)
            given = [kind(value) for kind, value in zip(self._kinds, values, strict=True)]
            driver.launch(function, grid, stream, given)

    def _load(self, driver: Driver, index: int) -> ctypes.c_void_p:
        """Compile and load it for a GPU, once, whatever threads ask."""
        with self._lock:
            if index not in self._functions:
                major, minor = torch.cuda.get_device_capability(index)
                self._functions[index] = driver.load(self._loader.compile(self._instance, f"sm_{major}{minor}"))
            return self._functions[index]


class Driver:
    """The functions of NVIDIA's driver that load and launch kernels.

    Args:
        name: The name of the driver's library.
    """

    def __init__(self, name: str = "libcuda.so.1") -> None:
        self._name = name
        self._contexts: dict[int, ctypes.c_void_p] = {}

    @contextmanager
    def current(self, index: int) -> Iterator[None]:
        """In this block, torch's context of a GPU is the current one of this thread, which may have none.

        `torch.cuda.device` does not make it so in a new thread, as those of autograd, if the GPU is the first one. Such
        a thread keeps it, as in `opwright/cuda/gpu/driver.h`.
        """
        present, wanted = ctypes.c_void_p(), self._primary(index)
        self._library.cuCtxGetCurrent(ctypes.byref(present))
        if not present.value and index == 0:
            self._demand(self._library.cuCtxSetCurrent(wanted), f"turning to cuda:{index}")
            present = wanted
        if present.value == wanted.value:
            yield
            return
        self._demand(self._library.cuCtxPushCurrent_v2(wanted), f"turning to cuda:{index}")
        try:
            yield
        finally:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(present))

    def _primary(self, index: int) -> ctypes.c_void_p:
        """Torch's context of a GPU, kept for the life of the process, as torch does."""
        if index not in self._contexts:
            device, context = ctypes.c_int(), ctypes.c_void_p()
            self._demand(self._library.cuDeviceGet(ctypes.byref(device), index), f"finding cuda:{index}")
            self._demand(self._library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), f"using cuda:{index}")
            self._contexts[index] = context
        return self._contexts[index]

    def load(self, cubin: bytes) -> ctypes.c_void_p:
        """Load machine code into the current context, also in the capture of a CUDA graph; returns the entry."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        with self._uncaptured():
            self._demand(self._library.cuModuleLoadData(ctypes.byref(module), cubin), "loading a kernel")
            status = self._library.cuModuleGetFunction(ctypes.byref(function), module, ENTRY.encode())
            self._demand(status, "finding a kernel")
        return function

    @contextmanager
    def _uncaptured(self) -> Iterator[None]:
        """What this block does is allowed in a capture, and no part of it."""
        mode = ctypes.c_int(_RELAXED)
        self._library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        try:
            yield
        finally:
            self._library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))

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
            library = ctypes.CDLL(self._name)
        except OSError as error:
            raise CudaCompilerMissing(f"NVIDIA's driver is not installed here: {error}") from None
        library.cuInit(0)  # where torch has not; what fails is told by the functions that are called next
        return library

    def _demand(self, status: int, what: str) -> None:
        if status != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(text))
            raise NoKernel(f"{what} failed: {(text.value or b'unknown error').decode()} ({status})")


@cache
def _driver() -> Driver:
    return Driver()

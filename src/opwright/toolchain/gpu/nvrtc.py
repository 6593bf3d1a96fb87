"""NVRTC: NVIDIA's compiler of CUDA C++ as a library, which needs neither a GPU nor a toolkit.

It is found, in this order, in the wheels that a CUDA build of torch brings, in the PyPI wheel `nvidia-cuda-nvrtc`
(both lie below the package folder `nvidia`), inside torch itself, and in a toolkit.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from opwright.errors import BuildFailed, CudaCompilerMissing, InternalError
from opwright.toolchain.gpu.toolkit import USUAL_PLACE, wheel_packages

# Without contraction, as on the CPU (docs/decisions/0011).
SHIPPED_FLAGS = ("--std=c++17", "--fmad=false", "-w")
# With the lines of the source for profilers and sanitizers; they double the size, and name folders of this machine.
FLAGS = (*SHIPPED_FLAGS, "-lineinfo")

# The layouts of the wheels for CUDA 13 and for CUDA 12.
_WHEEL_LIBRARIES = ("cu*/lib/libnvrtc.so.*", "cuda_nvrtc/lib/libnvrtc.so.*")
_WHEEL_HEADERS = ("cu{major}/include", "cuda_runtime/include")
_BUILTINS = "libnvrtc-builtins.so.*"
_TOOLKIT_LIBRARIES = ("lib64/libnvrtc.so", "targets/*/lib/libnvrtc.so")
_SHOWN_LINES = 5
_SUCCESS, _INVALID_OPTION = 0, 5


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """An NVRTC that was loaded.

    Attributes:
        path: The library.
        version: Of CUDA: (major, minor).
        architectures: The compute capabilities it compiles for, ascending: 90 stands for sm_90 and compute_90.
        headers: The folder with `cuda_fp16.h`, `cuda_bf16.h` and their kind; None if it was not found.
    """

    path: Path
    version: tuple[int, int]
    architectures: tuple[int, ...]
    headers: Path | None


def compile_cuda(
    text: str,
    architecture: str,
    headers: Path | None = None,
    flags: Sequence[str] = FLAGS,
    *,
    name: str = "kernels.cu",
    nvrtc: Nvrtc | None = None,
) -> bytes:
    """Compile CUDA C++ to machine code, or to PTX, which a driver compiles further.

    Args:
        text: The source; `extern "C"` kernels keep their names.
        architecture: "sm_90" for a cubin, "compute_90" for PTX.
        headers: The folder that `#include "opwright/…"` is found below.
        flags: Options of NVRTC.
        name: The file that error messages name.
        nvrtc: What to compile with; by default what is found here.

    Raises:
        CudaCompilerMissing: There is no NVRTC.
        BuildFailed: It refused the source, or does not know the architecture.
    """
    nvrtc = nvrtc or find_nvrtc()
    library = _library(nvrtc.path)
    folders = [folder for folder in (headers, nvrtc.headers) if folder is not None]
    options = [f"--gpu-architecture={architecture}", *flags, *(f"-I{folder}" for folder in folders)]
    program = c_void_p()
    _demand(library.nvrtcCreateProgram(byref(program), text.encode(), name.encode(), 0, None, None), library)
    try:
        given = (c_char_p * len(options))(*[option.encode() for option in options])
        status = library.nvrtcCompileProgram(program, len(options), given)
        if status != _SUCCESS:
            log = _bytes(library, "ProgramLog", program).rstrip(b"\0").decode(errors="replace")
            raise _refusal(status, log, name, architecture, nvrtc)
        return _bytes(library, "CUBIN" if architecture.startswith("sm_") else "PTX", program)
    finally:
        library.nvrtcDestroyProgram(byref(program))


def find_nvrtc(cuda_home: Path | None = None) -> Nvrtc:
    """Return the NVRTC of this machine; of several, the one that fits torch.

    Args:
        cuda_home: A toolkit to look in where there are no wheels.

    Raises:
        CudaCompilerMissing: None was found, or none that was found can be loaded.
    """
    reasons = []
    for path in nvrtc_candidates(cuda_home):
        try:
            return _examine(path)
        except OSError as error:
            reasons.append(f"{path} cannot be loaded: {error}")
    raise CudaCompilerMissing(
        "there is no NVRTC, which compiles CUDA kernels" + "".join(f"; {reason}" for reason in reasons),
        hint="pip install nvidia-cuda-nvrtc, or name a toolkit with CUDA_HOME=/path/to/cuda",
    )


def nvrtc_candidates(cuda_home: Path | None) -> Iterator[Path]:
    """Give the libraries to try, the best first."""
    for folder in wheel_packages():
        found = [path for pattern in _WHEEL_LIBRARIES for path in folder.glob(pattern) if _major(path) is not None]
        # A driver takes the machine code of any CUDA with its own major version; torch's is one that it takes.
        yield from sorted(found, key=lambda path: (_major(path) == _major_of_torch(), _major(path) or 0), reverse=True)
    yield from sorted((Path(torch.__file__).parent / "lib").glob("libnvrtc-*.so*"))
    for toolkit in (*([cuda_home] if cuda_home else []), USUAL_PLACE):
        for pattern in _TOOLKIT_LIBRARIES:
            yield from sorted(toolkit.glob(pattern))


def _major(library: Path) -> int | None:
    """Return 13 for `libnvrtc.so.13`; None for what is not the library itself."""
    match = re.fullmatch(r"libnvrtc\.so\.(\d+)", library.name)
    return int(match[1]) if match else None


def _major_of_torch() -> int | None:
    return int(torch.version.cuda.partition(".")[0]) if torch.version.cuda else None


@lru_cache(maxsize=8)
def _examine(path: Path) -> Nvrtc:
    library = _library(path)
    major, minor, count = c_int(), c_int(), c_int()
    _demand(library.nvrtcVersion(byref(major), byref(minor)), library)
    _demand(library.nvrtcGetNumSupportedArchs(byref(count)), library)
    architectures = (c_int * count.value)()
    _demand(library.nvrtcGetSupportedArchs(architectures), library)
    return Nvrtc(path, (major.value, minor.value), tuple(architectures), _headers_beside(path, major.value))


def _headers_beside(path: Path, major: int) -> Path | None:
    """Return the folder with CUDA's own headers: in the same toolkit, or in the wheel of the runtime."""
    toolkit = path.parents[1] / "include"
    wheels = [folder / pattern.format(major=major) for folder in wheel_packages() for pattern in _WHEEL_HEADERS]
    return next((folder for folder in (toolkit, *wheels) if (folder / "cuda_fp16.h").exists()), None)


@lru_cache(maxsize=8)
def _library(path: Path) -> ctypes.CDLL:
    for part in sorted(path.parent.glob(_BUILTINS)):
        ctypes.CDLL(str(part))  # which the NVRTC of CUDA 13.0 looks for by name, and not beside itself
    library = ctypes.CDLL(str(path))
    library.nvrtcGetErrorString.restype = c_char_p
    library.nvrtcCreateProgram.argtypes = [c_void_p, c_char_p, c_char_p, c_int, c_void_p, c_void_p]
    library.nvrtcCompileProgram.argtypes = [c_void_p, c_int, c_void_p]
    library.nvrtcDestroyProgram.argtypes = [c_void_p]
    for result in ("ProgramLog", "CUBIN", "PTX"):
        library[f"nvrtcGet{result}Size"].argtypes = [c_void_p, c_void_p]
        library[f"nvrtcGet{result}"].argtypes = [c_void_p, c_char_p]
    return library


def _bytes(library: ctypes.CDLL, result: str, program: c_void_p) -> bytes:
    size = c_size_t()
    _demand(library[f"nvrtcGet{result}Size"](program, byref(size)), library)
    content = ctypes.create_string_buffer(size.value)
    _demand(library[f"nvrtcGet{result}"](program, content), library)
    return content.raw


def _demand(status: int, library: ctypes.CDLL) -> None:
    if status != _SUCCESS:
        raise InternalError(f"NVRTC says {library.nvrtcGetErrorString(status).decode()}")


def _refusal(status: int, log: str, name: str, architecture: str, nvrtc: Nvrtc) -> BuildFailed:
    """Say what is wrong with a source, as `file:line: error: …`, or with the options."""
    if status == _INVALID_OPTION and int(re.sub(r"\D", "", architecture) or 0) not in nvrtc.architectures:
        known = ", ".join(map(str, nvrtc.architectures))
        return BuildFailed(
            f"NVRTC {nvrtc.version[0]}.{nvrtc.version[1]} does not compile for {architecture}",
            hint=f"it compiles for {known}; pip install --upgrade nvidia-cuda-nvrtc for a newer GPU",
        )
    return refused(log, name, architecture)


def refused(log: str, name: str, architecture: str) -> BuildFailed:
    """What a compiler of NVIDIA's says of a source, with places as `file:line`."""
    lines = [line for line in log.splitlines() if line.strip(" ^~")]
    shown = [re.sub(r"^(.+?)\((\d+)\): ", r"\1:\2: ", line) for line in lines[:_SHOWN_LINES]]
    return BuildFailed("\n".join([f"compiling {name} for {architecture} failed", *(f"  {line}" for line in shown)]))

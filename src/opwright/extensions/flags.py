"""The compiler and linker flags of an extension of PyTorch: those of `torch.utils.cpp_extension`."""

from __future__ import annotations

from pathlib import Path

import torch

from opwright.extensions.request import Request
from opwright.settings import Settings
from opwright.toolchain.compiler import Compiler
from opwright.toolchain.gpu.architectures import architecture_flags
from opwright.toolchain.gpu.toolkit import CudaToolkit
from opwright.toolchain.headers.torch_build import STANDARD, TORCH, include_folders, library_flags

_CUDA_FLAGS = (
    *("-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__"),
    *("-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"),
    "--expt-relaxed-constexpr",
)
_LIMITED_API = "-DPy_LIMITED_API=0x030A0000"
_WITH_CUDA = "-DWITH_CUDA"


def system_includes(toolkit: CudaToolkit | None) -> tuple[Path, ...]:
    """Return the header folders of torch, of CUDA if requested, and of Python."""
    return include_folders(*(() if toolkit is None else (toolkit.headers,)))


def cpp_flags(request: Request, toolkit: CudaToolkit | None) -> tuple[str, ...]:
    """Return the flags of C++ sources; a user's own come last and take precedence."""
    return (
        *request.base_flags,
        *_shared_flags(request, toolkit),
        "-fPIC",
        *_standard(request.cpp_flags),
        *request.cpp_flags,
    )


def cuda_flags(request: Request, toolkit: CudaToolkit, compiler: Compiler, settings: Settings) -> tuple[str, ...]:
    """Return the flags of CUDA sources.

    Raises:
        ArchitectureUnknown: TORCH_CUDA_ARCH_LIST names what nvcc does not compile for.
    """
    return (
        *(flag for flag in request.base_flags if flag.startswith("-O")),
        *_shared_flags(request, toolkit),
        *_CUDA_FLAGS,
        *_architectures(request.cuda_flags, toolkit, settings),
        *("--compiler-options", "-fPIC"),
        *_host_compiler(request.cuda_flags, compiler, settings),
        *_standard(request.cuda_flags),
        *request.cuda_flags,
    )


def device_link_flags(request: Request, toolkit: CudaToolkit, settings: Settings) -> tuple[str, ...]:
    """Return the flags of the step that links device code of several objects."""
    wanted = request.device_link_flags or ()
    architectures = _architectures((*request.cuda_flags, *wanted), toolkit, settings)
    own = tuple(flag for flag in request.cuda_flags if _names_architectures(flag))
    return ("-dlink", *architectures, *own, "--compiler-options", "-fPIC", *wanted)


def link_flags(request: Request, toolkit: CudaToolkit | None) -> tuple[str, ...]:
    """Return the linker flags: libraries, and where to find them."""
    cuda = ("c10_cuda", "torch_cuda") if toolkit is not None and torch.version.cuda else ()
    python = ("torch_python",) if request.kind != "program" and not request.limited_api else ()
    return (
        *(() if request.kind == "program" else ("-shared",)),
        *request.link_flags,
        *library_flags(*cuda, *python),
        *((f"-Wl,-rpath,{TORCH / 'lib'}",) if request.kind == "program" else ()),
        *(() if toolkit is None else _cuda_libraries(request, toolkit)),
    )


def _cuda_libraries(request: Request, toolkit: CudaToolkit) -> tuple[str, ...]:
    """Return CUDA's own libraries; a module finds the libcudart that torch has loaded."""
    folder = toolkit.runtime.parent
    device = (f"-L{folder}", "-lcudadevrt") if request.relocatable else ()
    return (*device, str(toolkit.runtime), *((f"-Wl,-rpath,{folder}",) if request.kind == "program" else ()))


def _shared_flags(request: Request, toolkit: CudaToolkit | None) -> tuple[str, ...]:
    """Return the flags of both compilers: the name of the extension, and where headers are."""
    named = (f"-DTORCH_EXTENSION_NAME={request.name}", "-DTORCH_API_INCLUDE_EXTENSION_H")
    return (
        *(named if request.kind != "program" else ()),
        *((_LIMITED_API,) if request.limited_api else ()),
        *((_WITH_CUDA,) if toolkit is not None else ()),
        *(f"-I{folder}" for folder in request.include_directories),
        *(word for folder in system_includes(toolkit) for word in ("-isystem", str(folder))),
    )


def _standard(flags: tuple[str, ...]) -> tuple[str, ...]:
    return () if any(flag.startswith("-std=") for flag in flags) else (f"-std={STANDARD}",)


def _host_compiler(flags: tuple[str, ...], compiler: Compiler, settings: Settings) -> tuple[str, ...]:
    """Make nvcc use the compiler that the user chose, unless a flag chooses another."""
    chosen = any(flag.startswith(("-ccbin", "--compiler-bindir")) for flag in flags)
    plain = settings.compiler is not None and not compiler.leading_words
    return ("-ccbin", str(compiler.path)) if plain and not chosen else ()


def _architectures(flags: tuple[str, ...], toolkit: CudaToolkit, settings: Settings) -> tuple[str, ...]:
    """Return the architectures to compile for, unless a flag of the user names them."""
    if any(_names_architectures(flag) for flag in flags):
        return ()
    return architecture_flags(settings, toolkit.architectures, f"nvcc {toolkit.version}")


def _names_architectures(flag: str) -> bool:
    return flag.startswith(("-arch", "-code", "-gencode", "--gpu-", "--generate-code"))

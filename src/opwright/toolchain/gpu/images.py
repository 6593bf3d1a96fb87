"""The kernels of a CUDA source, compiled, and the C++ file that puts them into a library.

    <name>.cu             the kernels                  as they were emitted
    <name>.sm_90.cubin    machine code                 one file for each architecture
    <name>.compute_90.ptx PTX
    <name>_device.cpp     `opwright::kernel_images`    the files above, taken in by the assembler

For host execution there are no images: `<name>_device.cpp` includes the kernels themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from opwright.errors import CudaCompilerMissing
from opwright.settings import Settings
from opwright.toolchain.gpu.architectures import architectures, for_compiler
from opwright.toolchain.gpu.nvcc import compile_with_nvcc, nvcc_path
from opwright.toolchain.gpu.nvrtc import FLAGS, compile_cuda, find_nvrtc, nvrtc_candidates
from opwright.toolchain.process.cores import available_cores
from opwright.toolchain.source import Source
from opwright.toolchain.storage.records import digest


def device_file(source: Source) -> str:
    """The name of the C++ file that stands for the kernels of a source."""
    return f"{source.name}_device.cpp"


def host_flags(settings: Settings) -> tuple[str, ...]:
    """With which flags a launcher of kernels is compiled."""
    return ("-DOPWRIGHT_CUDA_ON_HOST",) if settings.cuda_on_host else ()


def device_facts(source: Source, settings: Settings, flags: Sequence[str] = FLAGS) -> dict[str, object]:
    """All that the kernels of a source depend on, found without loading a compiler.

    Args:
        source: What has kernels.
        settings: What to compile with, and for which GPUs.
        flags: Options of the compiler.

    Raises:
        CudaCompilerMissing: There is no compiler of CUDA kernels.
        ArchitectureUnknown: The user's list of GPUs cannot be read.
    """
    if settings.cuda_on_host:
        return {"text": digest(source.device or "")}
    return {
        "text": digest(source.device or ""),
        "architectures": list(architectures(settings)),
        "flags": list(flags),
        "compiler": _identity(settings),
    }


def write_kernels(
    source: Source, directory: Path, headers: Path, settings: Settings, shown_as: Path, flags: Sequence[str] = FLAGS
) -> None:
    """Compile the kernels of a source in a directory, and write the C++ file that stands for them.

    Args:
        source: What has kernels.
        directory: Where the library is built.
        headers: The folder that `#include "opwright/…"` is found below.
        settings: What to compile with, and for which GPUs.
        shown_as: Where error messages say that the kernels are.
        flags: Options of the compiler.

    Raises:
        BuildFailed: The compiler refused them.
        CudaCompilerMissing: There is no compiler of CUDA kernels.
    """
    device = source.device or ""
    (directory / f"{source.name}.cu").write_text(device, encoding="utf-8")
    if settings.cuda_on_host:
        text = _included(source)
    else:
        files = _compiled(source.name, device, directory, headers, settings, shown_as, flags) if device else {}
        text = _embedding(files)
    (directory / device_file(source)).write_text(text, encoding="utf-8")


def _included(source: Source) -> str:
    """The kernels themselves, and no images."""
    headers = '#include "opwright/cuda/host_execution.h"\n#include "opwright/cuda/kernels.h"\n'
    return f'{headers}\n#include "{source.name}.cu"\n\n{_table(())}'


def _compiled(
    name: str, text: str, directory: Path, headers: Path, settings: Settings, shown_as: Path, flags: Sequence[str]
) -> dict[str, str]:
    """Compile for each architecture, side by side; give the files by what they are for."""

    def compile_for(architecture: str) -> bytes:
        if settings.cuda_compiler:
            return compile_with_nvcc(settings.cuda_compiler, text, architecture, headers, flags, name=str(shown_as))
        nvrtc = find_nvrtc(settings.cuda_home)
        return compile_cuda(text, architecture, headers, flags, name=str(shown_as), nvrtc=nvrtc)

    targets = image_targets(settings)
    files = {target: f"{name}.{target}.{'cubin' if target.startswith('sm_') else 'ptx'}" for target in targets}
    with ThreadPoolExecutor(max_workers=available_cores()) as pool:
        for target, image in zip(targets, pool.map(compile_for, targets), strict=True):
            (directory / files[target]).write_bytes(image)
    return files


def image_targets(settings: Settings) -> tuple[str, ...]:
    """What kernels are compiled for: "sm_90" is machine code, "compute_90" PTX.

    Raises:
        CudaCompilerMissing: There is no compiler of CUDA kernels.
        ArchitectureUnknown: The user's list of GPUs cannot be read.
    """
    wanted = architectures(settings)
    if settings.cuda_compiler:
        return wanted
    known = find_nvrtc(settings.cuda_home).architectures
    return tuple(dict.fromkeys(for_compiler(architecture, known) for architecture in wanted))


def _embedding(files: Mapping[str, str]) -> str:
    """The images, whose bytes the assembler reads from their files; PTX ends in a zero."""
    lines = ['#include "opwright/cuda/kernels.h"', ""]
    for position, file in enumerate(files.values()):
        name = _symbol(position)
        lines += [
            f'extern "C" __attribute__((visibility("hidden"))) const unsigned char {name}[];',
            f'__asm__(".pushsection .rodata\\n.balign 64\\n{name}: .incbin \\"{file}\\"\\n.byte 0\\n.popsection");',
        ]
    return "\n".join([*lines, "", _table(tuple(files))])


def _table(targets: Sequence[str]) -> str:
    rows = [f'    {{"{target}", {_symbol(position)}}},' for position, target in enumerate(targets)]
    return "\n".join(["const opwright::cuda::Image opwright::kernel_images[] = {", *rows, "    {},", "};", ""])


def _symbol(position: int) -> str:
    return f"opwright_image_{position}"


def _identity(settings: Settings) -> list[object]:
    """What tells a compiler from every other one: its file."""
    if settings.cuda_compiler:
        return _file_identity(Path(nvcc_path(settings.cuda_compiler)))
    for path in nvrtc_candidates(settings.cuda_home):
        return _file_identity(path)
    find_nvrtc(settings.cuda_home)
    raise CudaCompilerMissing("there is no compiler of CUDA kernels")


def _file_identity(path: Path) -> list[object]:
    status = path.stat()
    return [str(path), status.st_size, status.st_mtime_ns]

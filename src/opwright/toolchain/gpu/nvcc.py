"""nvcc instead of NVRTC: `CUDACXX=/path/to/nvcc`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from opwright.errors import BuildFailed, CudaCompilerMissing
from opwright.toolchain.gpu.nvrtc import FLAGS, refused
from opwright.toolchain.process.starting import run


def compile_with_nvcc(
    nvcc: str,
    text: str,
    architecture: str,
    headers: Path | None = None,
    flags: Sequence[str] = FLAGS,
    *,
    name: str = "kernels.cu",
    timeout_s: float = 120.0,
) -> bytes:
    """Compile CUDA C++ as `toolchain.nvrtc.compile_cuda` does.

    Args:
        nvcc: The executable.
        text: The source.
        architecture: "sm_90" for a cubin, "compute_90" for PTX.
        headers: The folder that `#include "opwright/…"` is found below.
        flags: Options.
        name: The file that error messages name.
        timeout_s: How long it may take.

    Raises:
        CudaCompilerMissing: There is no such executable.
        BuildFailed: It refused the source, or took too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "kernels.cu"), Path(folder, "image")
        source.write_text(text, encoding="utf-8")
        kind = "--cubin" if architecture.startswith("sm_") else "--ptx"
        includes = () if headers is None else (f"-I{headers}",)
        target = f"--gpu-architecture={architecture}"
        command = (nvcc_path(nvcc), target, kind, *flags, *includes, str(source), "-o", str(made))
        try:
            done = run(command, timeout_s)
        except OSError as error:
            raise _missing(nvcc, str(error.strerror)) from error
        except subprocess.TimeoutExpired as error:
            raise BuildFailed(f"compiling {name} for {architecture} took too long and was stopped") from error
        if done.returncode != 0:
            raise refused((done.stderr or done.stdout).replace(str(source), name), name, architecture)
        return made.read_bytes()


def nvcc_path(nvcc: str) -> str:
    """Return where an nvcc is.

    Raises:
        CudaCompilerMissing: It was not found.
    """
    found = shutil.which(nvcc)
    if found is None:
        raise _missing(nvcc, "it was not found")
    return found


def _missing(nvcc: str, reason: str) -> CudaCompilerMissing:
    return CudaCompilerMissing(
        f"{nvcc} cannot compile CUDA kernels: {reason}",
        hint="name a working nvcc with CUDACXX=/path/to/nvcc, or unset it to use NVRTC",
    )

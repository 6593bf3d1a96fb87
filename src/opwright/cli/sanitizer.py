"""compute-sanitizer: run the current command under NVIDIA's tool that checks kernels on a GPU."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from typing import Literal

from opwright.errors import SanitizerMissing
from opwright.settings import Settings
from opwright.toolchain.process.own_python import python_command

Sanitizer = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
_FOUND = 1


def run_under(sanitizer: Sanitizer, arguments: Sequence[str], settings: Settings) -> int:
    """Run this program again under a sanitizer; return its exit code, 1 if the sanitizer found something.

    Args:
        sanitizer: Which of compute-sanitizer's tools.
        arguments: What follows the program's name.
        settings: Says where a CUDA toolkit is.

    Raises:
        SanitizerMissing: There is no compute-sanitizer.
    """
    folder = None if settings.cuda_home is None else str(settings.cuda_home / "bin")
    found = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=folder or "/usr/local/cuda/bin")
    if found is None:
        raise SanitizerMissing(
            "compute-sanitizer was not found",
            hint="it comes with the CUDA toolkit: put it on the PATH, or set CUDA_HOME=/path/to/cuda",
        )
    watched = [*python_command("from opwright.cli.main import main; main()"), *arguments]
    tool = [found, "--tool", sanitizer, "--error-exitcode", str(_FOUND), "--target-processes", "all"]
    return subprocess.run([*tool, *watched], check=False).returncode

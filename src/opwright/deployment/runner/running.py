"""Building a program, running it, and reading what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch

from opwright.deployment.programs.target import Checked, Options
from opwright.errors import DeploymentFailed, ToolMissing
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler

_TIMEOUT_S = 600.0
_LINE = re.compile(r"^result \d+: largest difference (\S+), allowed (\S+)$", re.MULTILINE)
_MEDIAN = re.compile(r"^median of a run: (\S+) us$", re.MULTILINE)
_SHOWN_LINES = 5


def needs_cmake(options: Options) -> None:
    """Refuse where programs cannot be built.

    Raises:
        ToolMissing: If there is no CMake.
        CompilerMissing: If there is no working compiler.
    """
    _cmake()
    find_compiler(options.settings)


def build_and_run(folder: Path, settings: Settings) -> Checked:
    """Build `main` in a folder, and run it without a path and without Python.

    Raises:
        DeploymentFailed: If it does not build, or ends with an error.
        ToolMissing, CompilerMissing: If there is no CMake, or no compiler.
    """
    build_program(folder, settings)
    said = run_program(folder, [])
    found = _LINE.findall(said)
    median = _MEDIAN.search(said)
    if not found or not median:
        raise DeploymentFailed(f"{folder / 'main'} said something else than a result", hint="deploy the model again")
    return Checked(tuple(float(a) for a, _ in found), tuple(float(b) for _, b in found), float(median[1]))


def build_program(folder: Path, settings: Settings) -> Path:
    """Build `main` in its folder.

    Raises: As `build_and_run`.
    """
    cmake, compiler = _cmake(), find_compiler(settings)
    build = folder / "build"
    given = [f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}", f"-DCMAKE_CXX_COMPILER={compiler.path}"]
    _told([cmake, "-S", str(folder), "-B", str(build), *given], folder)
    _told([cmake, "--build", str(build)], folder)
    return folder / "main"


def run_program(folder: Path, words: Sequence[str]) -> str:
    """Run it in an environment of a number of threads, and return what it prints; exit code 1: a result differs.

    Raises:
        DeploymentFailed: If it ends with an error, in its words.
    """
    environment = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    try:
        done = subprocess.run(
            [str(folder.resolve() / "main"), *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        fact = f"{folder / 'main'} took more than {_TIMEOUT_S:.0f} s"
        raise DeploymentFailed(fact, hint="deploy a smaller example") from None
    if done.returncode not in (0, 1):
        said = done.stderr.strip().removeprefix("error: ") or f"it ended with {done.returncode}"
        raise DeploymentFailed(f"{folder / 'main'} failed: {said}", hint="deploy the model again with this torch")
    return done.stdout


def _cmake() -> str:
    found = shutil.which("cmake")
    if found is None:
        raise ToolMissing("there is no CMake, which builds the program", hint="install it: pip install cmake")
    return found


def _told(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "rror" in line][:_SHOWN_LINES]
        raise DeploymentFailed(
            f"the program in {folder} does not build\n" + "\n".join(lines), hint="deploy it again with this torch"
        )

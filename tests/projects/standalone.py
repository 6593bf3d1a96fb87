"""A Python that has torch, setuptools and pytest, and no opwright: where ejected projects have to stand."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_LITTLE
from tests.suite.warm_python import run

# Installed beside torch or found on a path, opwright stays out of reach.
_REFUSING = """
import sys

class NoOpwright:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opwright":
            raise ImportError("there is no opwright here")

sys.meta_path.insert(0, NoOpwright())
"""


_AS_PYTHON = """
import runpy
sys.argv = sys.argv[1:]
if sys.argv[0] == "-c":
    exec(sys.argv[1])
elif sys.argv[0] == "-m":
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Standalone:
    """Runs what a project's README says, in its folder.

    Attributes:
        environment: The variables.
        python: That of an environment; None for forks of a process that has imported torch alone.
    """

    environment: dict[str, str]
    python: Path | None = None

    def run(self, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        if self.python is None:
            return run("-c", _REFUSING + _AS_PYTHON, *arguments, cwd=project, env=self.environment, having="torch")
        command = [str(self.python), *arguments]
        return subprocess.run(command, cwd=project, env=self.environment, capture_output=True, text=True, timeout=900)

    def build(self, project: Path) -> None:
        done = self.run(project, "setup.py", "build_ext", "--inplace")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning:" not in done.stderr, done.stderr

    def test(self, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", *arguments)


def variables() -> dict[str, str]:
    """The variables of an environment in which opwright has never been, and whose compiler keeps what it makes."""
    compiler = keeping_compiler(OPTIMIZING_LITTLE)
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "OPWRIGHT_CACHE")}
    return {**kept, "CC": compiler, "CXX": compiler}


def make_environment(directory: Path) -> Standalone:
    """Make an environment; its packages are those of this one."""
    venv.create(directory / "environment", with_pip=False, symlinks=True)
    python = directory / "environment" / "bin" / "python"
    (site,) = (directory / "environment" / "lib").glob("python*/site-packages")
    # A folder that a .pth file names has none of its own .pth files read, so editable installs are not followed.
    (site / "beside.pth").write_text(f"{sysconfig.get_path('purelib')}\nimport no_opwright\n")
    (site / "no_opwright.py").write_text(_REFUSING)  # some systems have a sitecustomize of their own
    return Standalone(variables(), python)

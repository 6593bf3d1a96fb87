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

# Installed beside torch or found on a path, opwright stays out of reach.
_REFUSING = """
import sys

class NoOpwright:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opwright":
            raise ImportError("there is no opwright here")

sys.meta_path.insert(0, NoOpwright())
"""


@dataclass(frozen=True)
class Standalone:
    """Runs what a project's README says, in its folder."""

    python: Path
    environment: dict[str, str]

    def run(self, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.python), *arguments]
        return subprocess.run(command, cwd=project, env=self.environment, capture_output=True, text=True, timeout=900)

    def build(self, project: Path) -> None:
        done = self.run(project, "setup.py", "build_ext", "--inplace")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning:" not in done.stderr, done.stderr

    def test(self, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", *arguments)


def make_standalone(directory: Path) -> Standalone:
    """Make the environment; its packages are those of this one."""
    venv.create(directory / "environment", with_pip=False, symlinks=True)
    python = directory / "environment" / "bin" / "python"
    (site,) = (directory / "environment" / "lib").glob("python*/site-packages")
    # A folder that a .pth file names has none of its own .pth files read, so editable installs are not followed.
    (site / "beside.pth").write_text(f"{sysconfig.get_path('purelib')}\nimport no_opwright\n")
    (site / "no_opwright.py").write_text(_REFUSING)  # some systems have a sitecustomize of their own
    compiler = keeping_compiler(OPTIMIZING_LITTLE)
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "OPWRIGHT_CACHE")}
    return Standalone(python, {**kept, "CC": compiler, "CXX": compiler})

"""Processes that we start have our modules, whatever lies around, and where there is no Python to start none is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import opwright
from opwright.toolchain.process.own_python import can_start_python, python_command

WHERE = """
import random, subprocess
from importlib.util import find_spec
for name in ("opwright", "torch"):
    print(find_spec(name).origin)
"""


def found_in(folder: Path) -> list[str]:
    """The opwright and the torch that a process would import that is started in a folder."""
    done = subprocess.run(python_command(WHERE), cwd=folder, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.splitlines()


@pytest.fixture
def decoys(tmp_path: Path) -> Path:
    """A folder with modules of the names of ours."""
    for name in ("torch", "opwright", "random", "subprocess"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    return tmp_path


def test_what_lies_in_the_working_directory_is_not_imported(decoys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", ".", *sys.path])

    assert found_in(decoys) == [opwright.__file__, torch.__file__]


def test_nor_is_another_torch_that_lies_earlier_on_the_path(decoys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (decoys / "random.py").unlink()
    (decoys / "subprocess.py").unlink()
    monkeypatch.setattr(sys, "path", [str(decoys), *sys.path])

    assert found_in(decoys) == [opwright.__file__, torch.__file__]


def test_a_path_that_was_set_in_this_process_is_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "found_here.py").write_text("")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    done = subprocess.run(
        python_command("import found_here; print(found_here.__file__)"), capture_output=True, text=True
    )

    assert done.stdout.strip() == str(tmp_path / "found_here.py")


@pytest.mark.parametrize("name", ["python", "python3", "python3.11", "python3.13t", "pypy3", "pythonw.exe"])
def test_a_python_is_one_by_its_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / name))

    assert can_start_python()


@pytest.mark.parametrize("executable", ["", "/usr/bin/uwsgi", "/opt/blender/blender", "/nowhere/python3", os.devnull])
def test_other_programs_are_not_started(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", executable)

    assert not can_start_python()


@pytest.mark.parametrize("owner", ["sys.frozen", "sys._MEIPASS", "opwright.__compiled__"])
def test_frozen_applications_start_nothing(owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, _, attribute = owner.rpartition(".")
    assert can_start_python()
    monkeypatch.setattr(sys.modules[module], attribute, "/somewhere", raising=False)

    assert not can_start_python()

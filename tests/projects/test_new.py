"""A new project passes its tests as it is; names that no package can have are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opwright.errors import DirectoryTaken, ProjectNameUnusable
from opwright.projects import new_project
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_LITTLE
from tests.suite.warm_python import run

SOURCES = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(
    ("chosen", "passed"),
    [(("-k", "serve or formula"), "2 passed"), pytest.param((), "3 passed", marks=pytest.mark.nightly)],
    ids=["quick", "all"],
)
def test_a_new_project_passes_its_tests(chosen, passed, tmp_path):
    directory, files = new_project("gated_unit", tmp_path / "project")
    assert "gated_unit/operators.py" in files
    assert all((directory / file).is_file() for file in files)
    environment = os.environ | {
        "PYTHONPATH": str(SOURCES),
        "CXX": keeping_compiler(OPTIMIZING_LITTLE),
        "OPWRIGHT_TAPE": "off",
    }
    options = ("-q", "-W", "ignore", "-p", "no:cacheprovider", *chosen)
    done = run("-m", "pytest", *options, cwd=directory, env=environment, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert passed in done.stdout


@pytest.mark.parametrize(
    "name", ["", "2fast", "with-dash", "class", "_hidden", "größe", "math", "torch", "aten", "tests"]
)
def test_names_that_no_package_can_have_are_refused(name, tmp_path):
    with pytest.raises(ProjectNameUnusable, match=r"cannot be the name of a package|is the name of a module"):
        new_project(name, tmp_path / "project")
    assert not (tmp_path / "project").exists()


def test_a_directory_with_something_in_it_is_written_only_by_force(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(DirectoryTaken, match="is not empty"):
        new_project("gated_unit", tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"
    new_project("gated_unit", tmp_path, force=True)
    assert "gated_unit" in (tmp_path / "README.md").read_text()

"""The files around the package agree with each other, and name nothing of one machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[1]

MACHINE_PATH = re.compile(r"(?<![\w./~*-])/(?:work|root|home|Users|tmp|opt|mnt)\b")
REGISTRY = re.compile(
    r"pypi\.org|pythonhosted\.org|download\.pytorch\.org|anaconda\.org|--(?:extra-)?index-url|--find-links"
)


def read(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["project"]
    return table


def files_of_the_repository() -> list[Path]:
    """What is tracked, or would be: everything that git does not ignore."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listing.stdout.splitlines() if (path := REPOSITORY / name).is_file()]


def lines_that_match(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("README.md", {"demo", "test"}),
        ("CONTRIBUTING.md", {"setup", "docs", "test", "browser", "gpu", "lint", "format", "nightly", "newest"}),
        (".ci/run", {"lint", "test"}),
    ],
)
def test_commands_are_targets_of_the_makefile(name: str, expected: set[str]) -> None:
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), flags=re.MULTILINE))
    named = set(re.findall(r"^make ([a-z]+)", read(name), flags=re.MULTILINE))

    assert named == expected
    assert named <= targets


def test_the_build_server_can_run_its_script() -> None:
    assert os.access(REPOSITORY / ".ci/run", os.X_OK)


def test_the_changelog_starts_with_the_version_of_the_package() -> None:
    versions = re.findall(r"^## \[(.+?)\]", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert versions[0] == project()["version"]


def test_torch_is_pinned() -> None:
    assert "torch==2.13.0" in read("constraints.txt").splitlines()


def test_every_dependency_is_pinned() -> None:
    groups = [project()["dependencies"], *project()["optional-dependencies"].values()]
    asked = {re.split(r"[><=!~\[; ]", requirement)[0] for group in groups for requirement in group}
    pinned = {line.partition("==")[0] for line in read("constraints.txt").splitlines() if "==" in line}

    assert asked - {project()["name"]} <= pinned


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="asks git which files belong to the repository")
class TestFilesOfTheRepository:
    def test_no_path_of_one_machine(self) -> None:
        tests = REPOSITORY / "tests"
        shipped = [path for path in files_of_the_repository() if not path.is_relative_to(tests)]
        assert lines_that_match(MACHINE_PATH, shipped) == []

    def test_no_address_of_a_registry(self) -> None:
        others = [path for path in files_of_the_repository() if path != Path(__file__)]
        assert lines_that_match(REGISTRY, others) == []


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        (MACHINE_PATH, "cache = '/tmp/opwright'", True),
        (MACHINE_PATH, "see /work/main/README.md", True),
        (MACHINE_PATH, "/root", True),
        (MACHINE_PATH, "the user's ~/work/opwright", False),
        (MACHINE_PATH, "docs/work/notes.md and /workers", False),
        (MACHINE_PATH, "exec </dev/null", False),
        (REGISTRY, "pip install --extra-index-url here torch", True),
        (REGISTRY, "https://pypi.org/simple", True),
        (REGISTRY, "pip install -c constraints.txt .", False),
    ],
)
def test_patterns_find_what_they_are_for(pattern: re.Pattern[str], line: str, found: bool) -> None:
    assert bool(pattern.search(line)) is found


def test_importing_the_package_loads_no_sympy():
    ran = subprocess.run([sys.executable, "-c", "import opwright, sys; sys.exit('sympy' in sys.modules)"], timeout=60)
    assert ran.returncode == 0, "calls by kernels need no sympy, which takes 0.3 s to import"

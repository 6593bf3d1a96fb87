"""What a run finds of the runs before it: their libraries, and nothing else."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.source import Source
from opwright.toolchain.storage.records import RecordStore
from tests.executables import write_executable
from tests.quick_compiler import FOLDER, OPTIMIZING_NOTHING, quick_compiler
from tests.suite.kept_libraries import cache_of_a_run, prune

SOURCE = Source("kernel", 'extern "C" int f() { return 7; }\n')


def written(path: Path, body: str) -> str:
    """A compiler that runs some lines of shell first."""
    return str(write_executable(path, f'#!/bin/sh\n{body}\nexec g++ "$@"\n'))


@dataclass
class Runs:
    """Runs that keep their libraries in one folder, with a compiler that writes down what it compiles."""

    folder: Path

    def compiled(self, source: Source = SOURCE) -> int:
        """Build a source in a run of its own; give how many sources were compiled by now."""
        log = self.folder / "log"
        compiler = quick_compiler(OPTIMIZING_NOTHING, written(self.folder / "g++", f'echo "$*" >> {log}'))
        with cache_of_a_run(self.folder) as directory:
            build([source], Settings(directory, compiler, notify=False))
        return log.read_text().count(f"{source.name}.cpp")


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def test_a_library_is_compiled_once(runs: Runs) -> None:
    assert [runs.compiled(), runs.compiled()] == [1, 1]


def test_another_source_is_compiled(runs: Runs) -> None:
    assert runs.compiled() == 1
    assert runs.compiled(Source("kernel", SOURCE.text.replace("7", "8"))) == 2


def test_a_damaged_library_is_compiled_again(runs: Runs) -> None:
    assert runs.compiled() == 1
    (library,), (part,) = (runs.folder.glob(f"libraries/*/*/kernel.{suffix}") for suffix in ("so", "o"))
    library.write_bytes(library.read_bytes()[:-1])
    assert runs.compiled() == 1  # linked again
    for damaged in (library, part):
        damaged.write_bytes(damaged.read_bytes()[:-1])
    assert runs.compiled() == 2


def test_records_are_not_kept(tmp_path: Path) -> None:
    with cache_of_a_run(tmp_path) as directory:
        RecordStore(Settings(directory)).write("plans", "key", {})
    with cache_of_a_run(tmp_path) as directory:
        assert RecordStore(Settings(directory)).read("plans", "key") is None


def test_a_run_leaves_nothing_but_libraries(runs: Runs) -> None:
    runs.compiled()
    assert list((runs.folder / "runs").iterdir()) == []


def test_what_killed_runs_left_is_removed_unless_another_is_under_way(tmp_path: Path) -> None:
    left_behind = tmp_path / "runs" / "killed"
    with cache_of_a_run(tmp_path):
        left_behind.mkdir()
        with cache_of_a_run(tmp_path):
            assert left_behind.exists()
    with cache_of_a_run(tmp_path):
        assert not left_behind.exists()


@pytest.mark.parametrize(("limit_bytes", "kept"), [(0, []), (240, ["new"]), (300, ["middle", "new", "old"])])
def test_what_was_used_least_recently_is_removed_above_a_limit(
    limit_bytes: int, kept: list[str], tmp_path: Path
) -> None:
    for age_s, name in enumerate(["new", "middle", "old"]):
        entry = tmp_path / "ab" / name
        entry.mkdir(parents=True)
        (entry / "kernel.so").write_bytes(b"x" * (200 if name == "middle" else 50))
        os.utime(entry / "kernel.so", (1e9 - age_s, 1e9 - age_s))
    prune(tmp_path, limit_bytes)
    assert sorted(path.name for path in tmp_path.glob("*/*")) == kept


def test_this_run_is_such_a_run() -> None:
    directory = Settings.from_environment().cache_directory
    assert (directory / "libraries").is_symlink()
    assert not (directory / "records").is_symlink()


def test_scripts_of_one_folder_run_one_compiler_for_each_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.quick_compiler.available_cores", lambda: 1)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    alone = written(tmp_path / "alone", f"mkdir {tmp_path}/one || exit 1; sleep 0.1; rmdir {tmp_path}/one")
    compiler = quick_compiler(OPTIMIZING_NOTHING, alone)
    running = [subprocess.Popen([compiler, "--version"], stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4

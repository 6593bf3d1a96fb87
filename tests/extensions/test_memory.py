from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opwright.extensions import memory
from opwright.extensions.memory import available_bytes, jobs_at_once
from opwright.settings import Settings

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 cores and 10 GiB to give, and a control group without a limit."""
    for name in ("_MEMORY", "_OWN_GROUP", "_GROUPS"):
        monkeypatch.setattr(memory, name, tmp_path / name)
    (tmp_path / "_MEMORY").write_text(f"MemTotal: 1 kB\nMemAvailable:   {10 << 20} kB\n")
    (tmp_path / "_OWN_GROUP").write_text("0::/above/own\n")
    (tmp_path / "_GROUPS" / "above" / "own").mkdir(parents=True)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)))
    return tmp_path


def limit(folder: Path, most: str, used: int) -> None:
    (folder / "memory.max").write_text(f"{most}\n")
    (folder / "memory.current").write_text(f"{used}\n")


def test_memory_limits_compilers(machine: Path) -> None:
    settings = Settings(machine)

    assert [jobs_at_once(settings, each * GIB) for each in (1, 2, 4, 100)] == [8, 5, 2, 1]


@pytest.mark.parametrize(("group", "left"), [("above/own", 3), ("above", 3), (".", 3)])
def test_control_groups_above_count(machine: Path, group: str, left: int) -> None:
    limit(machine / "_GROUPS" / group, str(5 * GIB), 2 * GIB)

    assert available_bytes() == left * GIB


def test_a_group_without_a_limit_does_not(machine: Path) -> None:
    limit(machine / "_GROUPS" / "above", "max", 2 * GIB)

    assert available_bytes() == 10 * GIB


def test_the_user_has_the_last_word(machine: Path) -> None:
    assert jobs_at_once(replace(Settings(machine), job_limit=3), 100 * GIB) == 3


def test_cores_count_where_memory_is_unknown(machine: Path) -> None:
    (machine / "_MEMORY").unlink()

    assert available_bytes() is None
    assert jobs_at_once(Settings(machine), 100 * GIB) == 8

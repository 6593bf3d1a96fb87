"""What is used least recently goes first, and never what is built, loaded or about to be loaded."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.source import Source
from opwright.toolchain.storage.cache import LibraryCache
from opwright.toolchain.storage.limit import items, mark_used, shrink, shrink_now_and_then
from opwright.toolchain.storage.locks import hold
from opwright.toolchain.storage.records import RecordStore

DAY_S = 86_400.0
SOURCE = Source("answer", 'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }\n')


def entry(root: Path, name: str, size_bytes: int, days: float, kind: str = "libraries") -> Path:
    """An entry as the cache has them, used some days ago."""
    folder = root / kind / name[:2] / name if kind == "libraries" else root / kind / name
    folder.mkdir(parents=True)
    (folder / "kernel.so").write_bytes(b"x" * size_bytes)
    (folder / "stamp.json").touch()
    make_old(folder / "stamp.json", days)
    return folder


def make_old(path: Path, days: float) -> None:
    used = time.time() - days * DAY_S
    os.utime(path, (used, used))


@pytest.mark.parametrize(
    ("limit_bytes", "gone"), [(600, []), (599, ["b"]), (500, ["b"]), (301, ["b", "c"]), (100, ["b", "c", "a"])]
)
def test_the_least_recently_used_goes_first(tmp_path: Path, limit_bytes: int, gone: list[str]) -> None:
    folders = {name: entry(tmp_path, name, 200, days) for name, days in {"a": 1, "b": 3, "c": 2}.items()}

    assert [item.path.name for item in shrink(tmp_path, limit_bytes)] == gone
    assert [name for name, folder in folders.items() if not folder.exists()] == sorted(gone)
    assert list((tmp_path / "building").glob("*")) == [] if gone else True


def test_failures_and_records_go_too(tmp_path: Path) -> None:
    entry(tmp_path, "refused", 10, 2, kind="failed")
    store = RecordStore(Settings(tmp_path))
    store.write("plans", "old", {"a": 1})
    store.write("plans", "new", {"a": 1})
    make_old(tmp_path / "records/plans/old.json", 1)

    assert [item.path.name for item in shrink(tmp_path, 0)] == ["refused", "old.json"]
    assert store.read("plans", "old") is None
    assert store.read("plans", "new") == {"a": 1}


def test_what_is_being_built_stays(tmp_path: Path) -> None:
    folder = entry(tmp_path, "busy", 100, 9)
    (tmp_path / "locks").mkdir()
    with hold([tmp_path / "locks" / "busy.lock"], lambda _: None, 1.0):
        assert shrink(tmp_path, 0) == []
        assert folder.exists()
    assert [item.path for item in shrink(tmp_path, 0)] == [folder]


def test_what_a_process_has_loaded_stays(tmp_path: Path, settings: Settings) -> None:
    (library,) = build([SOURCE], settings)
    root, folder = library.parents[3], library.parent
    handle = ctypes.CDLL(str(library))
    assert folder not in {item.path for item in shrink(root, 0, spared_s=0.0)}
    assert handle.answer() == 42
    assert folder.exists()


def test_what_is_used_is_marked_and_spared(settings: Settings) -> None:
    (library,) = build([SOURCE], settings)
    root, stamp = library.parents[3], library.with_name("stamp.json")
    make_old(stamp, 5)
    assert build([SOURCE], settings) == (library,)  # it is found, and nothing is built

    assert time.time() - stamp.stat().st_mtime < DAY_S
    assert library.parent not in {item.path for item in shrink(root, 0)}
    make_old(stamp, 5)
    assert library.parent in {item.path for item in shrink(root, 0)}
    assert build([SOURCE], settings) == (library,)  # it is built again
    assert library.exists()


def test_a_cache_that_is_read_only_is_not_marked(tmp_path: Path) -> None:
    mark_used(tmp_path / "nowhere" / "stamp.json")
    assert not (tmp_path / "nowhere").exists()


def test_a_look_at_everything_is_taken_once_an_hour(tmp_path: Path) -> None:
    turn = tmp_path / "locks" / "limit.lock"
    shrink_now_and_then(tmp_path, 0)
    first = entry(tmp_path, "first", 100, 9)
    shrink_now_and_then(tmp_path, 0)
    assert first.exists()
    make_old(turn, 1)
    shrink_now_and_then(tmp_path, None)
    assert first.exists()
    shrink_now_and_then(tmp_path, 0)
    assert not first.exists()
    second = entry(tmp_path, "second", 100, 9)
    shrink_now_and_then(tmp_path, 0)
    assert second.exists()


def test_a_build_keeps_the_cache_within_its_limit(tmp_path: Path, settings: Settings) -> None:
    limited = Settings(tmp_path / "cache", compiler=settings.compiler, notify=False, cache_limit_bytes=1000)
    root = LibraryCache.open(limited.cache_directory).root
    old = entry(root, "old", 2000, 9)
    (root / "locks").mkdir(exist_ok=True)
    (root / "locks" / "limit.lock").touch()
    make_old(root / "locks" / "limit.lock", 1)

    (library,) = build([SOURCE], limited)
    assert not old.exists()
    assert library.exists()


def test_what_vanishes_while_it_is_counted_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry(tmp_path, "a", 100, 1)
    gone = entry(tmp_path, "b", 100, 1)
    inside = gone / "kernel.so"
    original = Path.stat

    def stat(self: Path, **options: bool) -> os.stat_result:
        if self == inside and gone.exists():
            shutil.rmtree(gone)
        return original(self, **options)

    monkeypatch.setattr(Path, "stat", stat)
    assert [item.path.name for item in items(tmp_path)] == ["a"]


def test_another_process_that_has_it_loaded_counts(settings: Settings) -> None:
    (library,) = build([SOURCE], settings)
    program = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)"
    command = [sys.executable, "-c", f"{program}; print('loaded', flush=True); sys.stdin.read()", str(library)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "loaded\n"
        shrink(library.parents[3], 0, spared_s=0.0)
        assert library.exists()
        other.stdin.close()
    shrink(library.parents[3], 0, spared_s=0.0)
    assert not library.exists()

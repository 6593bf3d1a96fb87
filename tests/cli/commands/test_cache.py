"""`opwright cache`."""

from __future__ import annotations

import json
import os
import time

import pytest

from opwright.toolchain.storage.cache import LibraryCache


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache directory of two libraries, the first of which was used two days ago, and a build that failed."""
    monkeypatch.setenv("OPWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPWRIGHT_CACHE_LIMIT", "1.5 kB")
    root = LibraryCache.open(tmp_path / "cache").root
    for name, days in {"libraries/aa/aa": 2, "libraries/bb/bb": 1, "failed/cc": 3}.items():
        (root / name).mkdir(parents=True)
        (root / name / "file.so").write_bytes(b"x" * 1000)
        (root / name / "stamp.json").touch()
        used = time.time() - days * 86_400
        os.utime(root / name / "stamp.json", (used, used))
    return root


def test_size_says_what_is_in_it(run, cache):
    code, out, err = run("cache", "size", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "directory": str(cache),
        "limit_bytes": 1500,
        "count": 3,
        "bytes": 3000,
        "libraries": {"count": 2, "bytes": 2000},
        "records": {"count": 0, "bytes": 0},
        "failed": {"count": 1, "bytes": 1000},
    }
    _, out, _ = run("cache", "size")
    assert out.splitlines()[0] == f"{cache}: 3 kB, of 1.5 kB at most"
    assert out.splitlines()[1].split() == ["libraries", "2", "2", "kB"]


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("prune",), ["bb"]),
        (("prune", "--to", "2kB"), ["aa", "bb"]),
        (("prune", "--to", "0"), []),
        (("clear",), []),
    ],
)
def test_less_is_kept(run, cache, words, left):
    code, out, err = run("cache", *words, "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["removed"]["count"] == 3 - len(left)
    assert said["left"] == {"count": len(left), "bytes": 1000 * len(left)}
    assert sorted(path.name for path in cache.glob("libraries/*/*")) == left


def test_prune_without_a_limit_removes_nothing(run, cache, monkeypatch):
    monkeypatch.setenv("OPWRIGHT_CACHE_LIMIT", "none")
    assert "removed 0 entries, 0 bytes; 3 entries are left, 3 kB" in run("cache", "prune")[1]
    assert run("cache", "size")[1].startswith(f"{cache}: 3 kB, without a limit\n")


def test_a_size_that_cannot_be_read_is_a_usage_error(run, cache):
    code, out, err = run("cache", "prune", "--to", "five apples")
    assert (code, out) == (2, "")
    assert "'five apples' is not a size" in err
    assert len(list(cache.glob("libraries/*/*"))) == 2

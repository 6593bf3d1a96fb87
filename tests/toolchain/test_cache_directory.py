from __future__ import annotations

import os
from pathlib import Path

import pytest

from opwright.errors import CacheUnusable, UnsafeCache
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.directory import private_directory
from tests.toolchain.conftest import returning


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720])
def test_a_directory_that_others_may_write_is_refused(mode: int, settings: Settings) -> None:
    settings.cache_directory.mkdir()
    settings.cache_directory.chmod(mode)

    with pytest.raises(UnsafeCache, match=rf"can be written by other users \(mode {mode:04o}\)\nhint: chmod go-w"):
        build([returning(7)], settings)


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500])
def test_a_directory_that_others_may_at_most_read_is_accepted(mode: int, tmp_path: Path) -> None:
    tmp_path.chmod(mode)

    assert private_directory(tmp_path) == tmp_path


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)

    with pytest.raises(UnsafeCache, match=rf"belongs to another user \(uid {owner}\)\nhint: .*OPWRIGHT_CACHE="):
        private_directory(tmp_path)


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")

    with pytest.raises(CacheUnusable, match=r"cache cannot be used: .*\nhint: .*OPWRIGHT_CACHE="):
        private_directory(tmp_path / "cache")


def test_everything_in_it_is_private_whatever_the_umask(settings: Settings) -> None:
    umask = os.umask(0)
    try:
        build([returning(7)], settings)
    finally:
        os.umask(umask)

    folders = [settings.cache_directory, *(path for path in settings.cache_directory.rglob("*") if path.is_dir())]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert private_directory(Path("cache")) == tmp_path / "cache"

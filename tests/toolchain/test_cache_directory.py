from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from opwright.errors import CacheUnusable, UnsafeCache
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.storage.directory import private_directory
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


@pytest.mark.parametrize("mode", [0o777, 0o702, 0o722])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_folder_above_it_that_others_may_write_is_refused(mode: int, depth: int, tmp_path: Path) -> None:
    """They could rename what is in it, and put a cache of their own there."""
    cache = tmp_path / "a" / "b" / "c" / "cache"
    private_directory(cache)
    folder = cache.parents[depth - 1]
    folder.chmod(mode)

    with pytest.raises(UnsafeCache) as refused:
        private_directory(cache)
    assert refused.value.fact == (
        f"the cache directory {cache} lies in {folder}, which can be written by other users (mode {mode:04o})"
    )
    assert refused.value.hint is not None
    assert refused.value.hint.startswith(f"chmod go-w {folder}; or choose another folder with OPWRIGHT_CACHE=")
    os.chmod(folder, mode & ~0o022)
    assert private_directory(cache) == cache


def test_in_a_sticky_folder_nobody_renames_what_is_ours(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    assert private_directory(tmp_path / "cache") == tmp_path / "cache"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
@pytest.mark.parametrize(("owner", "mode"), [(12345, 0o755), (12345, 0o1777)])
def test_a_folder_of_another_user_above_it_is_refused(owner: int, mode: int, tmp_path: Path) -> None:
    cache = tmp_path / "theirs" / "mine" / "cache"
    private_directory(cache)
    os.chown(tmp_path / "theirs", owner, -1)
    os.chmod(tmp_path / "theirs", mode)

    with pytest.raises(
        UnsafeCache, match=r"lies in .*/theirs, which belongs to another user \(uid 12345\)\nhint: choose"
    ):
        private_directory(cache)


@pytest.mark.parametrize(
    ("members", "name", "accepted"),
    [((), "me", True), (("me",), "me", True), (("me", "other"), "me", False), ((), "staff", False)],
)
def test_a_group_of_one_user_is_no_other_user(
    members: tuple[str, ...], name: str, accepted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red Hat's users have such groups, and a umask of 002 with them."""
    user = pwd.struct_passwd(("me", "x", os.geteuid(), tmp_path.stat().st_gid, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: user)
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((name, "x", gid, list(members))))
    tmp_path.chmod(0o775)

    if accepted:
        assert private_directory(tmp_path / "cache") == tmp_path / "cache"
    else:
        with pytest.raises(UnsafeCache, match=r"can be written by other users \(mode 0775\)"):
            private_directory(tmp_path / "cache")


def test_folders_above_it_are_made_private_whatever_the_umask(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        private_directory(tmp_path / "home" / ".cache" / "opwright")
    finally:
        os.umask(umask)

    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "home").rglob("*")} == {0o700}
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_what_a_link_leads_to_is_looked_at_and_the_link_is_not_followed_again(tmp_path: Path) -> None:
    (tmp_path / "open" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "open" / "inner")

    assert private_directory(tmp_path / "link") == tmp_path / "open" / "inner"
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(UnsafeCache, match=r"open/inner lies in .*/open, which can be written"):
        private_directory(tmp_path / "link")


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

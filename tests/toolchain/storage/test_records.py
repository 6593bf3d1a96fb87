from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opwright.errors import CacheUnusable, InternalError, UnsafeCache
from opwright.settings import Settings
from opwright.toolchain.storage.records import RecordStore

RECORD = {"dtype": "float32", "sizes": [16, 128], "saved": None}
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut in half": lambda content: content[: len(content) // 2],
    "last byte missing": lambda content: content[:-1],
    "altered": lambda content: content.replace(b"128", b"129"),
    "not an object": lambda content: b"[1, 2]",
    "no digest": lambda content: b'{"record": {"dtype": "float32"}}',
    "not a text": lambda content: b"\xff\xfe\x00",
    "too deep to parse": lambda content: b"[" * 100_000,
}


def test_a_record_outlives_its_store(settings: Settings) -> None:
    RecordStore(settings).write("variant", "abc", {"old": True})
    RecordStore(settings).write("variant", "abc", RECORD)

    assert RecordStore(settings).read("variant", "abc") == RECORD


@pytest.mark.parametrize(("kind", "key"), [("variant", "other"), ("other", "abc")])
def test_an_absent_record_reads_as_none(kind: str, key: str, settings: Settings) -> None:
    store = RecordStore(settings)
    store.write("variant", "abc", RECORD)

    assert store.read(kind, key) is None


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_record_reads_as_none(damage: Callable[[bytes], bytes], settings: Settings) -> None:
    store = RecordStore(settings)
    store.write("variant", "abc", RECORD)
    path = settings.cache_directory / "records" / "variant" / "abc.json"
    path.write_bytes(damage(path.read_bytes()))

    assert store.read("variant", "abc") is None


def test_a_record_that_cannot_be_written_leaves_the_old_one(settings: Settings) -> None:
    store = RecordStore(settings)
    store.write("variant", "abc", RECORD)
    with pytest.raises(TypeError):
        store.write("variant", "abc", {"value": object()})

    assert store.read("variant", "abc") == RECORD
    assert [path.name for path in (settings.cache_directory / "records" / "variant").iterdir()] == ["abc.json"]


@pytest.mark.parametrize(("kind", "key"), [("variant", "../abc"), ("a/b", "abc"), ("variant", ""), (".", "abc")])
def test_names_cannot_leave_the_folder(kind: str, key: str, settings: Settings) -> None:
    with pytest.raises(InternalError, match="filed under"):
        RecordStore(settings).write(kind, key, RECORD)


def test_records_that_others_may_write_are_not_read(settings: Settings) -> None:
    store = RecordStore(settings)
    store.write("variant", "abc", RECORD)
    settings.cache_directory.chmod(0o777)

    with pytest.raises(UnsafeCache):
        store.read("variant", "abc")


def test_a_file_in_the_way_is_said(settings: Settings, tmp_path: Path) -> None:
    store = RecordStore(settings)
    store.write("variant", "abc", RECORD)
    (settings.cache_directory / "records" / "blocked").write_text("")

    with pytest.raises(CacheUnusable, match="blocked"):
        store.write("blocked", "abc", RECORD)

"""Small JSON records that outlive the process: what was derived, what a compiler can do."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from opwright.errors import InternalError
from opwright.settings import Settings
from opwright.toolchain.storage.directory import private_directory, refusing_os_errors, subdirectory
from opwright.toolchain.storage.limit import mark_used


def canonical_json(value: object) -> str:
    """Write a value as JSON in the one spelling that digests are taken of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(content: str | bytes) -> str:
    """Return the sha256 of a text or of bytes, in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


class RecordStore:
    """Records in the cache directory, one file `records/<kind>/<key>.json` each.

    A file holds the record and its digest, so a truncated or altered one reads as absent.

    Args:
        settings: Says where the cache directory is.
    """

    def __init__(self, settings: Settings) -> None:
        self._directory = settings.cache_directory

    def read(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return a record, or None if there is no intact one.

        Raises:
            UnsafeCache: Others can write to the cache directory.
        """
        path = private_directory(self._directory).joinpath(*_file_name(kind, key))
        match read_json(path):
            case {"record": dict(record), "sha256": str(sha256)} if digest(canonical_json(record)) == sha256:
                mark_used(path)
                return record
            case _:
                return None

    def write(self, kind: str, key: str, record: dict[str, Any]) -> None:
        """Store a record; a reader sees the old one or the new one, never a part.

        Raises:
            UnsafeCache: Others can write to the cache directory.
            CacheUnusable: The cache directory cannot be written.
        """
        cache = private_directory(self._directory)
        *folders, name = _file_name(kind, key)
        text = canonical_json({"record": record, "sha256": digest(canonical_json(record))})
        with refusing_os_errors(cache):
            replace_file(subdirectory(cache, *folders) / name, text)


def read_json(path: Path) -> Any:
    """Return the contents of a JSON file; None if it is missing or invalid."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def replace_file(path: Path, text: str) -> None:
    """Write a file beside its final place, then rename it there."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _file_name(kind: str, key: str) -> tuple[str, str, str]:
    for part in (kind, key):
        if not re.fullmatch(r"[A-Za-z0-9_-]+", part):
            raise InternalError(f"a record is filed under letters, digits, '_' and '-', not under {part!r}")
    return "records", kind, f"{key}.json"

"""A scripted model as a file, whose calls of operators are those of its library."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

_BY_THE_WRITER = ("version", ".data/serialization_id")


def write_archive(script: Any, names: Mapping[str, str], file: Path) -> None:
    """Write it.

    The code of an archive is text in which a call of `mine::gate` is `ops.mine.gate(…)`; all else is copied.

    Args:
        script: The model.
        names: The operators that it calls, "namespace::name", and their names in the library.
        file: Where it goes.
    """
    reader = torch._C.PyTorchFileReader(io.BytesIO(script.save_to_buffer()))
    writer = torch._C.PyTorchFileWriter(str(file))
    for record in reader.get_all_records():
        if record in _BY_THE_WRITER:
            continue
        data = reader.get_record(record)
        if record.startswith("code/") and record.endswith(".py"):
            data = _renamed(data.decode(), names).encode()
        writer.write_record(record, data, len(data))
    writer.write_end_of_file()


def _renamed(code: str, names: Mapping[str, str]) -> str:
    for before, after in names.items():
        code = re.sub(rf"\bops\.{re.escape(before.replace('::', '.'))}\(", f"ops.{after.replace('::', '.')}(", code)
    return code

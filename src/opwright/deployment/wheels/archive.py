"""A wheel as a file: the archive that installers read, the same bytes for the same contents."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from opwright.errors import WheelUnsupported
from opwright.version import VERSION

_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16


@dataclass(frozen=True, slots=True)
class Distribution:
    """What is written on a wheel.

    Attributes:
        name: What installers call it.
        version: Its version.
        tag: Which Pythons and platforms it is for.
        summary: What is in it.
        requires_python: The oldest Python.
        requires: What has to be installed besides.
    """

    name: str
    version: Version
    tag: str
    summary: str
    requires_python: str
    requires: tuple[str, ...]

    @property
    def package(self) -> str:
        """The package that Python imports."""
        return canonicalize_name(self.name).replace("-", "_")

    @property
    def file_name(self) -> str:
        """What its file is called."""
        return f"{self.package}-{self.version}-{self.tag}.whl"


def read_version(text: str) -> Version:
    """Read a version.

    Raises:
        WheelUnsupported: If it is none.
    """
    try:
        return Version(text)
    except InvalidVersion:
        raise WheelUnsupported(f"{text!r} is not the version of a wheel", hint="write one such as 1.2.0") from None


def write_wheel(distribution: Distribution, contents: Mapping[str, bytes], directory: Path) -> Path:
    """Write a wheel into a directory and return its path.

    Args:
        distribution: What is written on it.
        contents: What is in it, by path.
        directory: Where it goes.
    """
    about = f"{distribution.package}-{distribution.version}.dist-info"
    files = {
        **contents,
        f"{about}/METADATA": _metadata(distribution).encode(),
        f"{about}/WHEEL": _tags(distribution).encode(),
    }
    record = f"{about}/RECORD"
    path = directory / distribution.file_name
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (*files.items(), (record, _record(files, record).encode())):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr, info.compress_type = _MODE, zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return path


def _metadata(distribution: Distribution) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {distribution.name}",
        f"Version: {distribution.version}",
        f"Summary: {distribution.summary}",
        f"Requires-Python: {distribution.requires_python}",
        *(f"Requires-Dist: {requirement}" for requirement in distribution.requires),
    ]
    return "\n".join(lines) + "\n"


def _tags(distribution: Distribution) -> str:
    return f"Wheel-Version: 1.0\nGenerator: opwright {VERSION}\nRoot-Is-Purelib: false\nTag: {distribution.tag}\n"


def _record(files: Mapping[str, bytes], record: str) -> str:
    """The digest and size of every file, as installers check them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        writer.writerow((name, f"sha256={digest}", len(content)))
    writer.writerow((record, "", ""))
    return text.getvalue()

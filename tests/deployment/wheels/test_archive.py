"""A wheel is what installers expect, and the same bytes for the same contents."""

import base64
import csv
import hashlib
import io
import zipfile

import pytest
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from opwright.deployment.wheels.archive import Distribution, read_version, write_wheel
from opwright.errors import WheelUnsupported

DISTRIBUTION = Distribution(
    "My.Operators", Version("1.2"), "py3-none-manylinux_2_28_x86_64", "Two operators", ">=3.10", ("torch>=2.11",)
)
CONTENTS = {"my_operators/__init__.py": b"x = 1\n", "my_operators/lib/a.so": bytes(range(256))}


def test_its_name_says_what_it_is_for(tmp_path):
    path = write_wheel(DISTRIBUTION, CONTENTS, tmp_path)
    name, version, _, tags = parse_wheel_filename(path.name)
    assert (name, version, {str(tag) for tag in tags}) == ("my-operators", Version("1.2"), {DISTRIBUTION.tag})
    assert DISTRIBUTION.package == "my_operators"


def test_its_record_tells_every_file_and_its_digest(tmp_path):
    archive = zipfile.ZipFile(write_wheel(DISTRIBUTION, CONTENTS, tmp_path))
    record = "my_operators-1.2.dist-info/RECORD"
    rows = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(archive.read(record).decode()))}
    assert set(rows) == set(archive.namelist())
    assert rows.pop(record) == ("", "")
    for name, (digest, size) in rows.items():
        content = archive.read(name)
        expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        assert (digest, int(size)) == (f"sha256={expected}", len(content))


def test_its_metadata_names_torch_alone(tmp_path):
    archive = zipfile.ZipFile(write_wheel(DISTRIBUTION, CONTENTS, tmp_path))
    metadata = archive.read("my_operators-1.2.dist-info/METADATA").decode().splitlines()
    assert [line for line in metadata if line.startswith("Requires-Dist")] == ["Requires-Dist: torch>=2.11"]
    assert "Root-Is-Purelib: false" in archive.read("my_operators-1.2.dist-info/WHEEL").decode()


def test_the_same_contents_are_the_same_bytes(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    one, two = (write_wheel(DISTRIBUTION, CONTENTS, folder).read_bytes() for folder in folders)
    assert one == two


def test_a_version_that_is_none_is_refused():
    with pytest.raises(WheelUnsupported, match=r"'one' is not the version of a wheel\nhint: write one such as 1\.2\.0"):
        read_version("one")

"""Libraries are loaded only where they were built for."""

import hashlib

import pytest

from opwright.deployment.wheels.runtime.stamp import mismatch

CONTENT = b"kernels"
STAMP = {
    "system": "linux",
    "machine": "x86_64",
    "torch_target": "2.11",
    "libraries": {"a.so": hashlib.sha256(CONTENT).hexdigest()},
}


@pytest.mark.parametrize(
    ("torch_version", "machine", "system", "sentence"),
    [
        ("2.11.0", "x86_64", "linux", None),
        ("2.11.0+cu130", "x86_64", "linux", None),
        ("2.15.0a0+git123", "x86_64", "linux", None),
        ("10.0", "x86_64", "linux", None),
        ("2.9.1", "x86_64", "linux", "its kernels need torch 2.11 or newer, and this is torch 2.9.1"),
        ("1.13.1", "x86_64", "linux", "its kernels need torch 2.11 or newer, and this is torch 1.13.1"),
        ("2.13.0", "aarch64", "linux", "its kernels are for linux on x86_64, and this is linux on aarch64"),
        ("2.13.0", "x86_64", "darwin", "its kernels are for linux on x86_64, and this is darwin on x86_64"),
    ],
)
def test_a_mismatch_is_one_sentence(tmp_path, torch_version, machine, system, sentence):
    (tmp_path / "a.so").write_bytes(CONTENT)
    assert mismatch(STAMP, tmp_path, torch_version, machine, system) == sentence


def test_a_library_that_is_not_the_one_is_not_loaded(tmp_path):
    given = (STAMP, tmp_path, "2.13.0", "x86_64", "linux")
    assert mismatch(*given) == "its library a.so is missing"
    (tmp_path / "a.so").write_bytes(CONTENT + b"!")
    assert mismatch(*given) == "its library a.so is not the one that was built"

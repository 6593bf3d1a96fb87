"""Where opwright cannot work, its import says so in one sentence."""

from __future__ import annotations

import pytest
import torch

import opwright
from opwright.toolchain.process.platforms import Platform, PlatformUnsupported, refuse_unsupported, this_platform
from tests.suite.warm_python import run

SUPPORTED = Platform("Linux", (3, 11), 64, "little", has_gil=True, torch="2.11.0+cpu")


@pytest.mark.parametrize(
    ("fact", "value", "says"),
    [
        ("python", (3, 10), "opwright needs Python 3.11 or newer, and this is Python 3.10"),
        ("python", (2, 7), "opwright needs Python 3.11 or newer, and this is Python 2.7"),
        ("system", "Windows", "opwright needs Linux or macOS .*, and this is Windows"),
        ("system", "", "opwright needs Linux or macOS .*, and this is an unknown system"),
        ("pointer_bits", 32, "opwright needs a 64-bit Python, and this is one of 32 bits"),
        ("byte_order", "big", "opwright needs a little-endian processor, and this is a big-endian one"),
        ("has_gil", False, "opwright needs a Python with a global interpreter lock, and this is a free-threaded build"),
        ("torch", "2.10.1", r"opwright needs PyTorch 2\.11 or newer, and this is PyTorch 2\.10\.1"),
        ("torch", "1.13", r"opwright needs PyTorch 2\.11 or newer, and this is PyTorch 1\.13"),
        ("torch", "unknown", r"opwright needs PyTorch 2\.11 or newer, and this is PyTorch unknown"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_sentence(fact, value, says):
    with pytest.raises(PlatformUnsupported, match=f"^{says}$"):
        refuse_unsupported(SUPPORTED._replace(**{fact: value}))


@pytest.mark.parametrize(
    ("fact", "value"),
    [("python", (3, 14)), ("system", "Darwin"), ("torch", "2.13.0"), ("torch", "3.0"), ("torch", "2.12.0a0+git1")],
)
def test_what_is_supported_is_taken(fact, value):
    refuse_unsupported(SUPPORTED._replace(**{fact: value}))


def test_this_platform_is_supported():
    refuse_unsupported(this_platform(torch.__version__))


def test_the_import_is_what_refuses():
    script = "import torch, platform; platform.system = lambda: 'Windows'; import opwright"
    done = run("-c", script, having="torch")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("(on Windows: the Windows Subsystem for Linux), and this is Windows")
    assert issubclass(PlatformUnsupported, ImportError)


@pytest.mark.falls_back
def test_on_macos_every_operator_runs_its_reference_and_says_so_once(monkeypatch, recwarn):
    monkeypatch.setattr("platform.system", lambda: "Darwin")

    @opwright.operator
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    for _ in range(2):
        assert doubled(torch.ones(2)).tolist() == [2, 2]
    (said,) = recwarn
    assert "kernels are linked as Linux does it, and this is Darwin" in str(said.message)
    assert doubled.last_rung == "composed"

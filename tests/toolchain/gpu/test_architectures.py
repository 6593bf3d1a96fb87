from __future__ import annotations

from pathlib import Path

import pytest

from opwright.errors import ArchitectureUnknown
from opwright.settings import Settings
from opwright.toolchain.gpu import architectures as module
from opwright.toolchain.gpu.architectures import DEFAULT, architectures, for_compiler

READ = {
    "9.0": ("sm_90",),
    "8.0;9.0+PTX": ("sm_80", "sm_90", "compute_90"),
    "8.0 8.6, 8.0": ("sm_80", "sm_86"),
    "9.0a;12.0": ("sm_90a", "sm_120"),
    " 10.0+PTX; ": ("sm_100", "compute_100"),
    "Hopper+PTX": ("sm_90", "compute_90"),
    "native": DEFAULT,
    " ": DEFAULT,
}


@pytest.mark.parametrize("text", READ)
def test_lists_are_read_as_torch_reads_them(text: str) -> None:
    assert architectures(Settings(Path(), cuda_architectures=text)) == READ[text]


@pytest.mark.parametrize("text", ["Kepler", "8.0;nine", "90", "8.0+ptx"])
def test_what_is_no_compute_capability_is_refused(text: str) -> None:
    with pytest.raises(ArchitectureUnknown, match=r"neither a compute capability nor a .*\nhint: write it"):
        architectures(Settings(Path(), cuda_architectures=text))


def test_the_list_comes_before_the_gpus_and_these_before_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.torch.cuda, "is_available", lambda: False)
    without = architectures(Settings(Path()))
    monkeypatch.setattr(module.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(module.torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(module.torch.cuda, "get_device_capability", lambda index: [(9, 0), (8, 6), (9, 0)][index])

    assert without == DEFAULT
    assert architectures(Settings(Path())) == ("sm_86", "sm_90")
    assert architectures(Settings(Path(), cuda_architectures="8.0")) == ("sm_80",)


def test_a_gpu_newer_than_the_compiler_gets_ptx() -> None:
    known = (80, 90, 100)

    assert [for_compiler(name, known) for name in ("sm_90", "compute_100", "sm_120", "sm_95", "sm_75")] == [
        *("sm_90", "compute_100", "compute_100", "compute_90", "sm_75")
    ]

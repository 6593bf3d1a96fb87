from __future__ import annotations

from pathlib import Path

import pytest

from opwright.errors import ArchitectureUnknown
from opwright.settings import Settings
from opwright.toolchain.gpu import architectures as module
from opwright.toolchain.gpu.architectures import GENERATIONS, architecture_flags, architectures, for_compiler

DEFAULT = ("sm_80", "sm_90", "sm_100", "compute_100")
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
KNOWN = ("7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1")


def flags(text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    return architecture_flags(Settings(Path(), cuda_architectures=text), known, "nvcc 13.0")


def codes(text: str) -> list[str]:
    """Which codes a list of architectures asks for."""
    return [flag.rpartition("code=")[2] for flag in flags(text, KNOWN)]


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
    assert flags(None, KNOWN)[-1].endswith("code=compute_90")
    assert [flag.rpartition("=")[2] for flag in flags(None, ("7.5", "8.0"))] == ["sm_80", "compute_80"]
    assert architectures(Settings(Path())) == ("sm_86", "sm_90")
    assert architectures(Settings(Path(), cuda_architectures="8.0")) == ("sm_80",)


def test_a_gpu_newer_than_the_compiler_gets_ptx() -> None:
    known = (80, 90, 100)

    assert [for_compiler(name, known) for name in ("sm_90", "compute_100", "sm_120", "sm_95", "sm_75")] == [
        *("sm_90", "compute_100", "compute_100", "compute_90", "sm_75")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9.0", ["sm_90", "compute_90"]),
        ("8.0 9.0", ["sm_80", "sm_90", "compute_90"]),
        ("9.0;8.0", ["sm_80", "sm_90", "compute_90"]),
        ("8.0, 10.0", ["sm_80", "sm_100", "compute_100"]),
        ("8.0+PTX 9.0", ["sm_80", "compute_80", "sm_90"]),
        ("8.0 9.0+PTX", ["sm_80", "sm_90", "compute_90"]),
        ("9.0 9.0a", ["sm_90", "sm_90a", "compute_90"]),
        ("10.0f", ["sm_100f"]),
        ("Ampere", ["sm_80", "sm_86", "compute_86"]),
        ("Ampere+PTX 9.0", ["sm_80", "sm_86", "compute_86", "sm_90"]),
        ("Volta+Tegra", ["sm_72", "compute_72"]),
        ("Hopper Hopper", ["sm_90", "compute_90"]),
    ],
)
def test_a_list_is_read_and_has_ptx(text: str, expected: list[str]) -> None:
    assert codes(text) == expected


@pytest.mark.parametrize("name", GENERATIONS)
def test_every_generation_is_known(name: str) -> None:
    assert codes(name)[-1].startswith("compute_")


def test_a_flag_names_the_virtual_architecture_too() -> None:
    assert flags("9.0a+PTX", KNOWN) == (
        "-gencode=arch=compute_90a,code=sm_90a",
        "-gencode=arch=compute_90a,code=compute_90a",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("4.2", r"nvcc 13\.0 does not compile for compute capability 4\.2\nhint: it knows 7\.0, .*12\.1; name some"),
        ("8.0 9.9", r"does not compile for compute capability 9\.9\nhint: "),
        ("Kepler", r"'Kepler' in the list of CUDA architectures is neither .*\nhint: .*'8\.0 9\.0\+PTX'; generations"),
        ("9.0+ptx", r"'9\.0\+ptx' in the list"),
        ("sm_90", r"'sm_90' in the list"),
        ("90", r"'90' in the list"),
    ],
)
def test_nvcc_is_not_asked_for_what_it_does_not_know(text: str, words: str) -> None:
    with pytest.raises(ArchitectureUnknown, match=words):
        codes(text)

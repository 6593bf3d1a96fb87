from __future__ import annotations

import pytest

from opwright.errors import ArchitectureUnknown
from opwright.toolchain.gpu.device_lists import GENERATIONS, architecture_flags

KNOWN = ("7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1")


def codes(text: str) -> list[str]:
    """Which codes a list of architectures asks for."""
    return [flag.rpartition("code=")[2] for flag in architecture_flags(text, KNOWN, "nvcc 13.0")]


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
    assert architecture_flags("9.0a+PTX", KNOWN, "nvcc") == (
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
def test_what_does_not_exist_is_refused(text: str, words: str) -> None:
    with pytest.raises(ArchitectureUnknown, match=words):
        codes(text)

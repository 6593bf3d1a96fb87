from __future__ import annotations

from pathlib import Path

import pytest

from opwright.toolchain.processor import _description, fingerprint

CORE = "model\t\t: 167\nflags\t\t: fpu avx2\ncpu MHz\t\t: 2600.0\n\n"
SAME = {
    "another clock": CORE.replace("2600.0", "800.0"),
    "more cores": CORE + CORE.replace("avx2", "avx512f"),
}
DIFFERENT = {
    "other flags": CORE.replace("avx2", "avx512f"),
    "another model": CORE.replace("167", "143"),
    "arm": "Features\t: fp asimd\nCPU part\t: 0xd40\n\n",
}


def describe(tmp_path: Path, text: str) -> str:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(text)
    return _description(cpuinfo)


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_what_does_not_change_the_code_is_left_out(text: str, tmp_path: Path) -> None:
    assert describe(tmp_path, text) == describe(tmp_path, CORE)


@pytest.mark.parametrize("text", DIFFERENT.values(), ids=DIFFERENT)
def test_what_changes_the_code_is_seen(text: str, tmp_path: Path) -> None:
    assert describe(tmp_path, text) not in ("", describe(tmp_path, CORE))


def test_a_fingerprint_fits_a_key() -> None:
    architecture, _, described = fingerprint().rpartition("-")

    assert architecture
    assert len(described) == 16

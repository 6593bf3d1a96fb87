"""Which operands the launchers of CUDA kernels take in packs of neighbours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import opwright
from tests.keeping_compiler import keeping_compiler

HERE = Path(__file__).parent
HEADERS = Path(opwright.__file__).parent / "include"


def test_packs_where_neighbours_are_contiguous_or_one_value(tmp_path: Path) -> None:
    command = [keeping_compiler("", "g++"), "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}"]
    subprocess.run([*command, str(HERE / "layout_driver.cpp"), "-o", str(tmp_path / "program")], check=True)
    said = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout

    assert dict(line.split(": ") for line in said.splitlines()) == {
        "rows": "packs",
        "rows and their sums": "packs",
        "expanded rows": "one by one",
        "rows apart": "one by one",
        "unaligned rows": "one by one",
        "points": "packs",
        "expanded points": "packs",
        "points stored at one place": "one by one",
    }

"""docs/systems.md lists the systems as their tests are called."""

from __future__ import annotations

import ast
from pathlib import Path

FILES = sorted(Path(__file__).parent.glob("test_s[0-9]*.py"))
PAGE = Path(__file__).parents[2] / "docs" / "systems.md"


def row(file: Path) -> str:
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    number, _, system = said.splitlines()[0].rstrip(".").partition(": ")
    assert file.name.startswith(f"test_{number.lower()}_")
    return f"| {number} | {system} | [{file.name}](../tests/systems/{file.name}) |"


def test_the_page_lists_every_system_as_its_tests_call_it() -> None:
    rows = list(map(row, FILES))
    listed = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| S")]
    assert listed == rows, "the rows should be:\n" + "\n".join(rows)


def test_no_number_is_left_out() -> None:
    assert [row(file)[2:5] for file in FILES] == [f"S{number:02}" for number in range(1, len(FILES) + 1)]

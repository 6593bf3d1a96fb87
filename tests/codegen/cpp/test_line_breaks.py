"""Long lines of C++ are broken, and mean what they meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opwright.codegen.cpp.line_breaks import MOST_COLUMNS, broken

GOLDENS = Path(__file__).parents[1] / "goldens"
NAMES = [f"name_{n}" for n in range(30)]

CASES = {
    "arguments": f"  const float x = call({', '.join(NAMES)});",
    "conditions": f"  const bool valid = {' && '.join(f'{name} >= 2' for name in NAMES)};",
    "sum": f"    y[j] = {' + '.join(f'{name} * (a - {name})' for name in NAMES)};",
    "choice": f"    y[j] = {NAMES[0] * 9} > {NAMES[1] * 9} ? {NAMES[2] * 3} : {NAMES[3] * 3};",
    "template": f"    call<{', '.join(NAMES[:9])}>({', '.join(NAMES[:9])});",
    "strings": '  refuse("' + "a, b + c " * 8 + '", "' + "d && e " * 8 + '", kernels);',
    "one word": f"  {'word' * 60};",
}


@pytest.mark.parametrize("line", CASES.values(), ids=CASES)
def test_only_white_space_between_words_changes(line: str) -> None:
    written = broken(line)
    assert re.sub(r"\s+", " ", written) == re.sub(r"\s+", " ", line)
    strings = re.findall(r'"[^"]*"', line)
    assert all(string in written for string in strings)
    longest = max(map(len, [*line.split(), *strings])) + 16
    assert all(len(each) <= max(MOST_COLUMNS, longest) for each in written.split("\n"))


def test_lines_break_where_a_person_breaks_them() -> None:
    first = "    store<2>(grad_gates.at<float>(2*old_cell_size_1 * grad_gates.stride(1)),"
    second = "{grad_gates.stride(0), grad_gates.stride(1)}),"
    assert broken(f"{first} {second}").split("\n") == [first, f"        {second}"]


def test_comments_stay_comments() -> None:
    lines = broken("  // " + "y = x + 1, " * 30).split("\n")
    assert len(lines) > 1
    assert all(line.startswith("  // ") and len(line) <= MOST_COLUMNS for line in lines)


def test_directives_go_on_behind_a_backslash() -> None:
    lines = broken("#pragma omp simd" + "".join(f" reduction(+ : {name})" for name in NAMES)).split("\n")
    assert len(lines) > 1
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert not lines[-1].endswith("\\")
    assert all(len(line) <= MOST_COLUMNS for line in lines)


def test_short_lines_stay() -> None:
    text = "if (x) {\n  y();\n}\n\n// z\n"
    assert broken(text) == text


@pytest.mark.parametrize("golden", sorted(GOLDENS.iterdir()), ids=lambda path: path.name)
def test_no_emitted_line_is_longer(golden: Path) -> None:
    assert [line for line in golden.read_text().splitlines() if len(line) > MOST_COLUMNS] == []

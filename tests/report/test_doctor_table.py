from __future__ import annotations

import io

from rich.console import Console

from opwright.report.doctor_table import doctor_table

FINDINGS = [
    {"name": "PyTorch", "state": "works", "detail": "2.13.0", "remedy": None},
    {"name": "ninja", "state": "limited", "detail": "is [not] here", "remedy": "pip install ninja"},
    {"name": "C++ compiler", "state": "broken", "detail": "was not found " * 20, "remedy": "install " + "g++ " * 60},
]


def rendered(findings: list[dict[str, object]]) -> str:
    console = Console(file=io.StringIO(), width=80, no_color=True)
    passed = all(finding["state"] != "broken" for finding in findings)
    console.print(doctor_table({"passed": passed, "findings": findings}), crop=False)
    return console.file.getvalue()


def test_states_are_words_and_details_are_whole() -> None:
    text = rendered(FINDINGS)

    assert text.startswith("this machine: BROKEN (C++ compiler)\n")
    assert " ninja         limited  is [not] here" in text
    assert " ".join(text.split()).count("was not found") == 20


def test_commands_stand_on_lines_of_their_own_and_the_broken_first() -> None:
    lines = [line for line in rendered(FINDINGS).splitlines() if line.startswith("mend ")]

    assert lines == ["mend C++ compiler: install " + "g++ " * 60, "mend ninja: pip install ninja"]


def test_where_nothing_is_broken_the_headline_says_so() -> None:
    assert rendered(FINDINGS[:2]).startswith("this machine: WORKS\n")

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opwright.toolchain.headers.dependencies import marks, namesakes, newest_ns, read_dependencies

RULES = {
    "one line": ("a.o: /p/a.cpp /p/b.h\n", ("/p/a.cpp", "/p/b.h")),
    "several lines": ("a.o: /p/a.cpp \\\n  /p/b.h \\\n /q/c.h\n", ("/p/a.cpp", "/p/b.h", "/q/c.h")),
    "blanks and dollars": ("a.o: /p/my\\ file.h /p/$$x.h /p/a\\#b.h\n", ("/p/my file.h", "/p/$x.h", "/p/a#b.h")),
    "relative paths are papers": ("a.o: main.cpp /p/b.h\n", ("/p/b.h",)),
    "detours and twice": ("a.o: /p/q/../b.h /p/b.h\n", ("/p/b.h",)),
    "nothing": ("a.o:\n", ()),
}


@pytest.mark.parametrize(("rule", "paths"), RULES.values(), ids=RULES)
def test_a_rule_of_make_is_read(rule: str, paths: tuple[str, ...]) -> None:
    assert read_dependencies(rule) == paths


def test_a_file_of_the_user_counts_by_content_and_an_installed_one_by_its_stamp(tmp_path: Path) -> None:
    own, installed = tmp_path / "own.h", tmp_path / "usr" / "x.h"
    installed.parent.mkdir()
    seen = []
    for text in ("1", "2"):
        for file in (own, installed):
            file.write_text(text)
            os.utime(file, (1, 1))
        seen.append(marks([str(own), str(installed)], [installed.parent]))
    first, second = seen
    assert first is not None
    assert second is not None

    assert first.own != second.own
    assert first.installed == second.installed == {str(installed): "1 1000000000"}


def test_a_file_that_is_gone_has_no_marks(tmp_path: Path) -> None:
    assert marks([str(tmp_path / "gone.h")], []) is None


def test_the_newest_change_counts(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "ab"]
    for second, file in enumerate(files, 1):
        file.write_text("")
        os.utime(file, (second, second))

    assert newest_ns(map(str, files)) == 2_000_000_000


@pytest.mark.parametrize(
    ("made", "seen"),
    [
        ("near/x.h", True),
        ("near/lib/x.h", True),
        ("near/unrelated/x.h", False),
        ("near/y.h", False),
        ("beside/x.h", True),
    ],
)
def test_what_could_be_found_first_is_noticed(made: str, seen: bool, tmp_path: Path) -> None:
    headers = [tmp_path / "far" / "lib" / "x.h", tmp_path / "beside" / "z.h"]
    for header in headers:
        header.parent.mkdir(parents=True)
        header.write_text("")
    (tmp_path / "near").mkdir()

    def look() -> list[str]:
        found = marks([str(header) for header in headers], [])
        assert found is not None
        return namesakes(found, [tmp_path / "near"], [])

    before = look()
    (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / made).write_text("")

    assert (look() != before) == seen


def test_what_is_installed_is_not_searched(tmp_path: Path) -> None:
    installed = tmp_path / "venv" / "include"
    header = installed / "torch" / "x.h"
    header.parent.mkdir(parents=True)
    header.write_text("")

    found = marks([str(header)], [installed])
    assert found is not None
    assert namesakes(found, [tmp_path], [installed]) == []

"""A compiler that keeps what it made compiles again whatever could come out otherwise."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.executables import write_executable
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import FOLDER, OPTIMIZING_NOTHING

Edit = Callable[[Path], object]
SOURCE = '// by hand\n#include "answer.h"\nint main() {\n#warning said\n  return ANSWER; }\n'


class Keeping:
    """A compiler with a log, and a folder with one source."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._log = folder / "first", folder / "log"
        body = f'#!/bin/sh\ncase "$*" in *main.cpp*) echo 1 >> {self._log};; esac\nexec g++ "$@"\n'
        self.path = keeping_compiler(OPTIMIZING_NOTHING, str(write_executable(folder / "g++", body)))
        self.write_into(self.folder)

    def write_into(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "main.cpp").write_text(SOURCE)
        (folder / "answer.h").write_text("#define ANSWER 7\n")

    def answer(self, *flags: str) -> int:
        """What the program returns."""
        command = [self.path, *flags, "main.cpp", "-o", "program"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        assert (done.returncode, "#warning said" in done.stderr) == (0, True), done.stderr
        return subprocess.run([self.folder / "program"]).returncode

    @property
    def compiled(self) -> int:
        """How often it has compiled."""
        return self._log.read_text().count("1")


@pytest.fixture
def keeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keeping:
    monkeypatch.setenv(FOLDER, str(tmp_path / "compilers"))
    return Keeping(tmp_path)


def test_what_is_the_same_is_compiled_once_in_any_folder_under_any_comment(keeping: Keeping, tmp_path: Path) -> None:
    found = [keeping.answer(), keeping.answer()]
    keeping.folder = tmp_path / "second"
    keeping.write_into(keeping.folder)
    (keeping.folder / "main.cpp").write_text(SOURCE.replace("by hand", "by another"))

    assert [*found, keeping.answer()] == [7, 7, 7]
    assert keeping.compiled == 1


EDITS: dict[str, tuple[Edit, int]] = {
    "a header": (lambda folder: (folder / "answer.h").write_text("#define ANSWER 8\n"), 8),
    "the source": (lambda folder: (folder / "main.cpp").write_text(SOURCE.replace("ANSWER;", "9;")), 9),
}


@pytest.mark.parametrize(("edit", "answer"), EDITS.values(), ids=EDITS)
def test_what_changed_is_compiled_again(edit: Edit, answer: int, keeping: Keeping) -> None:
    assert keeping.answer() == 7
    edit(keeping.folder)
    assert keeping.answer() == answer


def test_other_flags_are_compiled_with(keeping: Keeping) -> None:
    assert [keeping.answer(f"-Dreturn=return {value} +") for value in (1, 2, 1)] == [8, 9, 8]
    assert keeping.compiled == 2


def test_what_is_refused_is_refused_again(keeping: Keeping) -> None:
    (keeping.folder / "answer.h").unlink()
    for _ in range(2):
        with pytest.raises(AssertionError, match=r"answer\.h: No such file"):
            keeping.answer()
    assert keeping.compiled == 2

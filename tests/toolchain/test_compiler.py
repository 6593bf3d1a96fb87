from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from opwright.errors import CompilerMissing
from opwright.settings import Settings
from opwright.toolchain import compiler
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.process import asking
from tests.executables import write_executable
from tests.toolchain.conftest import WriteScript

BROKEN = {
    "fails": ("#!/bin/sh\necho 'no licence' >&2\nexit 3\n", "no licence"),
    "fails in silence": ("#!/bin/sh\nexit 3\n", "exit status 3"),
    "is no program": ("\x7fELF nonsense", "cannot run"),
    "has no interpreter": ("#!/no/such/shell\n", "cannot run: No such file"),
    "hangs": ("#!/bin/sh\nexec sleep 600\n", "did not answer within 0.5 s"),
    "greets but cannot compile": (
        "#!/bin/sh\n[ \"$*\" = --version ] && exit 0\necho 'cannot execute cc1plus' >&2\nexit 1\n",
        "cannot execute cc1plus",
    ),
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Without a compiler, which is looked for."""
    return Settings(tmp_path / "cache")


def test_the_compiler_of_this_machine_is_found(settings: Settings) -> None:
    found = find_compiler(settings)

    assert found.path.is_absolute()
    assert found.version
    assert {"-std=c++17", "-O2", "-fPIC"} <= set(found.flags)


def test_a_compiler_that_is_not_there_is_missing(settings: Settings) -> None:
    with pytest.raises(CompilerMissing, match=r"/no/such/compiler was not found\nhint: install g\+\+ .*CXX="):
        find_compiler(replace(settings, compiler="/no/such/compiler"))


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_compiler_that_cannot_run_is_missing(
    text: str, reason: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PROBE_TIMEOUT_S", 0.5)
    broken = write_executable(tmp_path / "broken", text)

    with pytest.raises(CompilerMissing, match=rf"{broken} .*{reason}.*\nhint: "):
        find_compiler(replace(settings, compiler=str(broken)))


def test_every_candidate_is_tried_and_named(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write_executable(tmp_path / "clang++", BROKEN["fails"][0])

    with pytest.raises(
        CompilerMissing, match=r"g\+\+ was not found; .*clang\+\+ cannot run: no licence; c\+\+ was not"
    ):
        find_compiler(settings)


def test_a_broken_compiler_gives_way_to_the_next(
    settings: Settings, write_script: WriteScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = write_script(name="c++")
    write_executable(works.path.parent / "g++", BROKEN["fails"][0])
    monkeypatch.setenv("PATH", f"{works.path.parent}{os.pathsep}/bin")
    monkeypatch.setattr(compiler, "CANDIDATES", ("g++", "c++"))

    assert find_compiler(settings).path == works.path


def test_words_after_the_compiler_stay_with_it(settings: Settings, real_compiler: str) -> None:
    found = find_compiler(replace(settings, compiler=f"env {real_compiler}"))

    assert found.command[1:] == (real_compiler,)
    assert found.path.name == "env"


def test_a_path_with_a_space_is_one_word(settings: Settings, write_script: WriteScript) -> None:
    script = write_script(name="my compiler")

    assert find_compiler(replace(settings, compiler=str(script.path))).command == (str(script.path),)


def test_flags_that_a_compiler_refuses_are_left_out(settings: Settings, write_script: WriteScript) -> None:
    script = write_script('case "$*" in *-fno-trapping-math*) exit 1;; esac')
    everything = find_compiler(settings).flags

    assert find_compiler(replace(settings, compiler=str(script.path))).flags == tuple(
        flag for flag in everything if flag != "-fno-trapping-math"
    )


def test_the_first_name_of_gathers_that_gcc_knows_is_taken(settings: Settings, tmp_path: Path) -> None:
    text = """#!/bin/sh
case "$*" in
*--version*) echo "g++ 12.2.0 Free Software Foundation";;
*use_gather_8parts*) exit 1;;
esac"""
    scripts = {"older": text, "newer": text.replace("exit 1", "exit 0")}
    paths = {name: write_executable(tmp_path / name, script) for name, script in scripts.items()}
    older, newer = (find_compiler(replace(settings, compiler=str(path))) for path in paths.values())

    assert older.flags[-1] == "-mtune-ctrl=use_gather_4parts,use_gather"
    assert newer.flags[-1] == "-mtune-ctrl=use_gather_4parts,use_gather_8parts"


@pytest.mark.parametrize(
    ("greeting", "kind", "limit"),
    [
        ("g++ 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.", "gcc", "-fmax-errors=5"),
        ("Debian clang version 19.1.7\nTarget: x86_64", "clang", "-ferror-limit=5"),
    ],
)
def test_kinds_are_told_apart(greeting: str, kind: str, limit: str, settings: Settings, tmp_path: Path) -> None:
    fake = write_executable(tmp_path / "fake", f"#!/bin/sh\nprintf '{greeting}'\n")
    found = find_compiler(replace(settings, compiler=str(fake)))

    assert (found.kind, found.version) == (kind, greeting.splitlines()[0])
    assert limit in found.flags


def test_a_compiler_is_run_again_only_when_its_file_changes(settings: Settings, write_script: WriteScript) -> None:
    script = write_script()
    asked = replace(settings, compiler=str(script.path))
    first = find_compiler(asked)
    calls, gathers = script.calls(), script.calls("-mtune-ctrl")
    # Other settings are another look in this process, so what they find comes from the record on disk.
    again = find_compiler(replace(asked, notify=False))
    os.utime(script.path, (1, 1))
    touched = find_compiler(asked)

    assert first == again == touched
    assert calls - gathers == 2
    assert gathers <= 2  # one for each name
    assert script.calls() == 2 * calls


def test_a_cache_that_cannot_be_written_hides_no_compiler(settings: Settings, write_script: WriteScript) -> None:
    settings.cache_directory.mkdir(mode=0o700)
    (settings.cache_directory / "records").write_text("")

    assert find_compiler(replace(settings, compiler=str(write_script().path))).version

"""A library depends on every header that the compiler has read, however it was named, and on no other."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from opwright.errors import BuildFailed
from opwright.settings import Settings
from opwright.toolchain.headers.depending import build_with_headers
from opwright.toolchain.source import Source
from opwright.toolchain.storage.cache import Entry, LibraryCache
from tests.suite.nights import mostly_at_night
from tests.toolchain.conftest import WriteScript, in_the_making
from tests.toolchain.test_build import value_of

Edit = Callable[[Path], None]


def returning_value(head: str) -> Source:
    return Source("kernel", f'{head}\nextern "C" __attribute__((visibility("default"))) int f() {{ return VALUE; }}\n')


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def flags_of(folder: Path) -> tuple[str, ...]:
    return (f"-iquote{folder / 'own'}", f"-I{folder / 'first'}", f"-I{folder / 'second'}")


# How a header is named, in ways that a search for #include lines does not see, or sees where there is none.
SPELLINGS = {
    "in quotes": '#include "value.h"',
    "in brackets": "#include <value.h>",
    "by a macro": '#define HEADER "value.h"\n#include HEADER',
    "over two lines": '#inc\\\nlude "value.h"',
    "behind a comment": '/* why */ # /* not */ include "value.h"',
    "as a digraph": '%:include "value.h"',
    "if it is there": '#if __has_include("value.h")\n#include "value.h"\n#endif',
    "through another": '#include "outer.h"',
}


@pytest.mark.parametrize("spelling", mostly_at_night(SPELLINGS, by_day=[*SPELLINGS][2:8:2]))
def test_a_header_that_changes_is_built_with(spelling: str, settings: Settings, tmp_path: Path) -> None:
    write(tmp_path / "first" / "outer.h", "#define NAME <value.h>\n#include NAME\n")
    source, found = returning_value(SPELLINGS[spelling]), []
    for value in (3, 4, 3):
        write(tmp_path / "first" / "value.h", f"#define VALUE {value}\n")
        found.append(value_of(build_with_headers(source, settings, flags_of(tmp_path))))

    assert found == [3, 4, 3]
    assert in_the_making(settings) == []


def test_a_header_named_by_a_flag_is_built_with(settings: Settings, tmp_path: Path) -> None:
    found = []
    for value in (3, 4):
        write(tmp_path / "forced.h", f"#define VALUE {value}\n")
        flags = ("-include", str(tmp_path / "forced.h"))
        found.append(value_of(build_with_headers(returning_value(""), settings, flags)))

    assert found == [3, 4]


EDITS: dict[str, Edit] = {
    "a new one that is found earlier": lambda folder: write(folder / "first" / "value.h", "#define VALUE 5\n"),
    "a new one beside the source": lambda folder: write(folder / "own" / "value.h", "#define VALUE 5\n"),
    "the one that was found is gone": lambda folder: (folder / "second" / "value.h").unlink(),
    "it includes another now": lambda folder: write(folder / "second" / "value.h", '#include "deep/value.h"\n'),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_is_found_now_is_built_with(edit: str, settings: Settings, tmp_path: Path) -> None:
    write(tmp_path / "second" / "value.h", "#define VALUE 3\n")
    write(tmp_path / "second" / "deep" / "value.h", "#define VALUE 5\n")
    write(tmp_path / "third" / "value.h", "#define VALUE 5\n")
    source, flags = returning_value(SPELLINGS["in quotes"]), (*flags_of(tmp_path), f"-I{tmp_path / 'third'}")
    assert value_of(build_with_headers(source, settings, flags)) == 3

    EDITS[edit](tmp_path)
    assert value_of(build_with_headers(source, settings, flags)) == 5
    write(tmp_path / "second" / "deep" / "value.h", "#define VALUE 6\n")
    write(tmp_path / "third" / "value.h", "#define VALUE 6\n")
    then = value_of(build_with_headers(source, settings, flags))
    assert then == (5 if edit.startswith("a new one") else 6)


@pytest.mark.parametrize("asked_in", ["source", "header"])
def test_a_header_that_was_asked_for_and_was_not_there_is_found_later(
    asked_in: str, settings: Settings, tmp_path: Path
) -> None:
    asking = '#if __has_include("maybe.h")\n#include "maybe.h"\n#else\n#define VALUE 3\n#endif\n'
    write(tmp_path / "second" / "asking.h", asking)
    source = returning_value(asking if asked_in == "source" else '#include "asking.h"')
    assert value_of(build_with_headers(source, settings, flags_of(tmp_path))) == 3

    write(tmp_path / "first" / "maybe.h", "#define VALUE 5\n")
    assert value_of(build_with_headers(source, settings, flags_of(tmp_path))) == 5


def test_what_nobody_reads_builds_nothing(settings: Settings, write_script: WriteScript, tmp_path: Path) -> None:
    script = write_script()
    settings = replace(settings, compiler=str(script.path))
    write(tmp_path / "first" / "value.h", "#define VALUE 3\n")
    write(tmp_path / "first" / "other.h", "#define VALUE 4\n")
    source = returning_value('// #include "other.h"\n#if 0\n#include "other.h"\n#endif\n#include "value.h"')
    libraries = set()
    for value in (4, 5, 6):
        write(tmp_path / "first" / "other.h", f"#define VALUE {value}\n")
        libraries.add(build_with_headers(source, settings, flags_of(tmp_path)))

    assert len(libraries) == 1
    assert script.calls("kernel.cpp") == 1


def test_a_header_that_changes_while_it_is_compiled_is_not_mistaken(
    settings: Settings, write_script: WriteScript, tmp_path: Path
) -> None:
    """The compiler reads the old one, and the new one is there when it ends."""
    header = tmp_path / "first" / "value.h"
    write(header, "#define VALUE 3\n")
    body = (
        f'case "$*" in *kernel.cpp*) {{real}} "$@"; s=$?; sleep 0.02; echo "#define VALUE 4" > {header}; exit $s;; esac'
    )
    script = write_script("true")
    real = script.path.read_text().splitlines()[-1].removeprefix("exec ").removesuffix(' "$@"')
    script.path.write_text(script.path.read_text().replace("true", body.replace("{real}", real)))
    settings = replace(settings, compiler=str(script.path))
    source = returning_value(SPELLINGS["in quotes"])

    assert value_of(build_with_headers(source, settings, flags_of(tmp_path))) == 4


def test_a_header_that_changes_all_the_time_is_refused(
    settings: Settings, write_script: WriteScript, tmp_path: Path
) -> None:
    header = tmp_path / "first" / "value.h"
    write(header, "#define VALUE 3\n")
    script = write_script(f'case "$*" in *kernel.cpp*) sleep 0.02; echo "// $$" >> {header};; esac')
    settings = replace(settings, compiler=str(script.path))

    with pytest.raises(BuildFailed, match=r"^headers of kernel change while it is compiled\nhint: let whatever"):
        build_with_headers(returning_value(SPELLINGS["in quotes"]), settings, flags_of(tmp_path))


@pytest.mark.parametrize("edits", [6, pytest.param(120, marks=pytest.mark.nightly)])
def test_random_edits_give_what_an_empty_cache_gives(edits: int, settings: Settings, tmp_path: Path) -> None:
    chance, folders, names = random.Random(0), ("own", "first", "second"), ("value.h", "outer.h", "inner/value.h")
    write(tmp_path / "second" / "value.h", "#define VALUE 0\n")
    source = returning_value('#if __has_include("outer.h")\n#include "outer.h"\n#else\n#include "value.h"\n#endif')
    for number in range(1, edits + 1):
        path = tmp_path / chance.choice(folders) / chance.choice(names)
        if path.exists() and chance.random() < 0.4 and path != tmp_path / "second" / "value.h":
            path.unlink()
        elif path.name == "outer.h":
            inner = chance.choice(('"value.h"', "<value.h>"))
            write(
                path,
                f"#include {inner}\n#undef VALUE\n#define VALUE {number}\n" if number % 2 else f"#include {inner}\n",
            )
        else:
            write(path, f"#define VALUE {number}\n")
        afresh = replace(settings, cache_directory=tmp_path / "afresh")
        expected = value_of(build_with_headers(source, afresh, flags_of(tmp_path)))
        shutil.rmtree(tmp_path / "afresh")
        assert value_of(build_with_headers(source, settings, flags_of(tmp_path))) == expected, number


def test_a_clock_that_is_ahead_is_not_a_change(settings: Settings, tmp_path: Path) -> None:
    header = tmp_path / "first" / "value.h"
    write(header, "#define VALUE 3\n")
    later = time.time() + 3600
    os.utime(header, (later, later))

    assert value_of(build_with_headers(returning_value(SPELLINGS["in quotes"]), settings, flags_of(tmp_path))) == 3


def test_processes_that_sweep_leave_what_is_being_moved(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install = LibraryCache.install

    def swept(cache: LibraryCache, entry: Entry, built: Path) -> None:
        cache.sweep()
        install(cache, entry, built)

    monkeypatch.setattr(LibraryCache, "install", swept)
    write(tmp_path / "first" / "value.h", "#define VALUE 3\n")
    assert value_of(build_with_headers(returning_value('#include "value.h"'), settings, flags_of(tmp_path))) == 3

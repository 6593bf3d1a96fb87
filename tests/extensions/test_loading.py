from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

import opwright
from opwright.errors import BuildFailed, ExtensionUnloadable
from opwright.extensions import objects
from opwright.extensions.sources import SourceFile
from opwright.settings import Settings
from tests.extensions.conftest import MODULE, WriteSource, in_the_making, returning, value_of
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING
from tests.toolchain.conftest import Script

Load = Callable[..., str]

REGISTRATION = """
#ifdef OTHER
extern "C" void aoti_torch_library_init_def();
void* kept = reinterpret_cast<void*>(&aoti_torch_library_init_def);
#else
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
int64_t answer(int64_t x) { return 42 + x; }
STABLE_TORCH_LIBRARY(opwright_load_test, m) { m.def("answer(int x) -> int"); }
STABLE_TORCH_LIBRARY_IMPL(opwright_load_test, CompositeExplicitAutograd, m) { m.impl("answer", TORCH_BOX(&answer)); }
#endif
"""


@pytest.fixture
def load(settings: Settings) -> Load:
    """Build a library and return its path."""

    def load_library(*sources: Path, name: str = "quick", **options: object) -> str:
        chosen = {"is_python_module": False, "settings": settings, **options}
        return str(opwright.load(name, list(sources), **chosen))

    return load_library


def test_a_second_load_starts_no_process(load: Load, write: WriteSource, compiler: Script) -> None:
    source = write("a.cpp", returning(7))
    first = load(source)
    calls = compiler.calls()

    assert load(source) == first
    assert value_of(first) == 7
    assert compiler.calls() == calls


def test_a_changed_header_builds_anew_and_back_again_nothing(load: Load, write: WriteSource, compiler: Script) -> None:
    source = write("a.cpp", returning("ANSWER", before='#include "outer.h"'))
    write("outer.h", '#pragma once\n#include "inner.h"')
    values = []
    for answer in (1, 2, 1, 2):
        write("inner.h", f"#define ANSWER {answer}\n")
        values.append(value_of(load(source)))

    assert values == [1, 2, 1, 2]
    assert compiler.calls("a.cpp") == 2


def test_a_header_of_the_same_size_and_time_counts_by_its_content(load: Load, write: WriteSource) -> None:
    source = write("a.cpp", returning("ANSWER", before='#include "answer.h"'))
    values = []
    for answer in (1, 2):
        header = write("answer.h", f"#define ANSWER {answer}\n")
        os.utime(header, (1, 1))
        values.append(value_of(load(source)))

    assert values == [1, 2]


def test_a_new_header_that_is_found_first_builds_anew(load: Load, write: WriteSource) -> None:
    write("far/answer.h", "#define ANSWER 1\n")
    folders = [write("near/other.h", "").parent, write("far/answer.h", "#define ANSWER 1\n").parent]
    source = write("a.cpp", returning("ANSWER", before="#include <answer.h>"))
    before = value_of(load(source, extra_include_paths=folders))
    write("near/answer.h", "#define ANSWER 2\n")

    assert (before, value_of(load(source, extra_include_paths=folders))) == (1, 2)


def test_a_header_that_is_gone_is_missed(load: Load, write: WriteSource) -> None:
    header = write("answer.h", "#define ANSWER 1\n")
    source = write("a.cpp", returning("ANSWER", before='#include "answer.h"'))
    load(source)
    header.unlink()

    with pytest.raises(BuildFailed, match=r"a\.cpp:1: answer\.h: No such file"):
        load(source)


def test_a_change_to_one_source_compiles_one(load: Load, write: WriteSource, compiler: Script) -> None:
    sources = [write(f"{name}.cpp", returning(1, name)) for name in "ab"]
    load(*sources)
    write("a.cpp", returning(2, "a"))
    changed = load(*sources)

    assert (value_of(changed, "a"), value_of(changed, "b")) == (2, 1)
    assert (compiler.calls("a.cpp"), compiler.calls("b.cpp")) == (2, 1)


def test_without_objects_a_change_compiles_all_and_no_change_nothing(
    load: Load, write: WriteSource, compiler: Script
) -> None:
    sources = [write(f"{name}.cpp", returning(1, name)) for name in "ab"]
    load(*sources, keep_intermediates=False)
    load(*sources, keep_intermediates=False)
    write("a.cpp", returning(2, "a"))
    load(*sources, keep_intermediates=False)

    assert (compiler.calls("a.cpp"), compiler.calls("b.cpp")) == (2, 2)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"extra_cflags": ["-DANSWER=5"]}, 5),
        ({"extra_cflags": [" -DANSWER=6 "]}, 6),
        ({"extra_include_paths": ["{project}/elsewhere"]}, 8),
    ],
)
def test_options_reach_the_compiler_and_the_cache(
    options: dict[str, list[str]], value: int, load: Load, write: WriteSource, tmp_path: Path
) -> None:
    write("elsewhere/answer.h", "#define ANSWER 8\n")
    preamble = '#if __has_include("answer.h")\n#include "answer.h"\n#endif\n#ifndef ANSWER\n#define ANSWER 0\n#endif\n'
    source = write("a.cpp", returning("ANSWER", before=preamble))
    given = {name: [word.format(project=tmp_path / "project") for word in words] for name, words in options.items()}

    assert value_of(load(source)) == 0
    assert value_of(load(source, **given)) == value


def test_a_library_that_is_linked_to_may_change(load: Load, write: WriteSource, tmp_path: Path) -> None:
    source = write("a.cpp", returning("g()", before='extern "C" int g();'))
    values = []
    for value in (1, 22):
        made = write("g.c", f"int g() {{ return {value}; }}")
        subprocess.run(["gcc", "-fPIC", "-c", made, "-o", tmp_path / "g.o"], check=True)
        subprocess.run(["ar", "rc", tmp_path / "libg.a", tmp_path / "g.o"], check=True)
        values.append(value_of(load(source, extra_ldflags=[f"-L{tmp_path}", "-lg"])))

    assert values == [1, 22]


def test_a_copy_goes_where_the_user_wants_it(load: Load, write: WriteSource, tmp_path: Path) -> None:
    library = load(write("a.cpp", returning(7)), build_directory=tmp_path / "out")

    assert library == str(tmp_path / "out" / "quick.so")
    assert value_of(library) == 7
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["quick.so"]


def test_a_module_of_python_is_imported_once(load: Load, write: WriteSource, settings: Settings) -> None:
    source = write("quick.cpp", f"#define ANSWER 7\n{MODULE}")
    module = opwright.load("quick", source, settings=settings)
    again = opwright.load("quick", source, settings=settings)
    write("quick.cpp", f"#define ANSWER 8\n{MODULE}")
    changed = opwright.load("quick", source, settings=settings)

    assert module is again
    assert (module.answer(), changed.answer()) == (7, 8)


def test_a_program_runs(load: Load, write: WriteSource) -> None:
    source = write("main.cpp", "int main(int count, char**) { return count + 40; }")
    program = load(source, is_standalone=True)

    assert subprocess.run([program, "more"], check=False).returncode == 42


def test_operators_are_registered_once(load: Load, write: WriteSource, settings: Settings) -> None:
    load = partial(load, settings=replace(settings, compiler=keeping_compiler(OPTIMIZING_NOTHING)))
    flags = ["-DTORCH_TARGET_VERSION=0x020b000000000000", "-O0"]
    source = write("a.cpp", REGISTRATION)
    load(source, extra_cflags=flags)
    load(source, extra_cflags=flags)

    assert torch.ops.opwright_load_test.answer(1) == 43
    with pytest.raises(
        ExtensionUnloadable, match=r"quick registers operators, and another .*\nhint: start a new process"
    ):
        load(source, extra_cflags=[*flags, "-DOTHER"])


def test_cuda_that_is_optional_leaves_the_cpp_part(
    load: Load, write: WriteSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    guarded = "#ifdef WITH_CUDA\nint g();\n#else\nint g() { return 5; }\n#endif"
    library = load(write("a.cpp", returning("g()", before=guarded)), write("b.cu", "nonsense"), cuda_optional=True)

    assert value_of(library) == 5


def test_a_verbose_load_tells_everything(load: Load, write: WriteSource, capfd: pytest.CaptureFixture[str]) -> None:
    source = write("a.cpp", "#warning careful\n" + returning(7))
    load(source, verbose=True)
    first = capfd.readouterr().err
    load(source, verbose=True)
    second = capfd.readouterr().err

    assert "-DTORCH_EXTENSION_NAME=quick" in first
    assert "a.cpp:1:2: warning: #warning careful" in first
    assert second == "opwright: quick has not changed\n"


def test_a_quiet_load_says_nothing(load: Load, write: WriteSource, capfd: pytest.CaptureFixture[str]) -> None:
    load(write("a.cpp", "#warning careful\n" + returning(7)))

    assert capfd.readouterr() == ("", "")


def test_a_header_that_never_rests_is_refused(
    load: Load, write: WriteSource, write_script: Callable[..., Script], settings: Settings, tmp_path: Path
) -> None:
    header = write("answer.h", "#define ANSWER 1\n")
    # File systems take their times from a clock that ticks every 4 or 10 ms.
    changing = f'case "$*" in *a.cpp*) sleep 0.02; echo "#define ANSWER $$" > {header};; esac'
    restless = write_script(changing, name="restless")
    source = write("a.cpp", returning("ANSWER", before='#include "answer.h"'))

    with pytest.raises(BuildFailed, match=r"headers of .*a\.cpp change while it is compiled\nhint: "):
        load(source, settings=replace(settings, compiler=str(restless.path)))
    assert restless.calls("a.cpp") == objects.ATTEMPTS


def test_a_header_from_the_future_is_taken_as_it_is(load: Load, write: WriteSource, compiler: Script) -> None:
    header = write("answer.h", "#define ANSWER 1\n")
    os.utime(header, (2**32, 2**32))
    source = write("a.cpp", returning("ANSWER", before='#include "answer.h"'))

    assert [value_of(load(source)) for _ in range(2)] == [1, 1]
    assert compiler.calls("a.cpp") == 2  # once more, to see that it rests


def test_nothing_is_left_in_the_making(load: Load, write: WriteSource, settings: Settings) -> None:
    load(write("a.cpp", returning(7)))
    with pytest.raises(BuildFailed):
        load(write("b.cpp", "nonsense"))

    assert in_the_making(settings) == []


def test_a_prelude_is_compiled_once_and_counts(
    load: Load, write: WriteSource, compiler: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [write(f"{name}.cpp", returning("PRELUDE", name)) for name in "ab"]
    values = []
    for value in (1, 2, 1):
        prelude = SourceFile(Path("prelude.h"), f"#define PRELUDE {value}\n")
        monkeypatch.setattr("opwright.extensions.plan._PRELUDE", prelude)
        values += [value_of(load(source, name=source.stem, use_pch=True), source.stem) for source in sources]

    assert values == [1, 1, 2, 2, 1, 1]
    assert compiler.calls("-x c++-header") == 2

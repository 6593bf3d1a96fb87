"""What is wrong with a user's sources, in one message with file and line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import opwright
from opwright.errors import BuildFailed, ExtensionUnloadable, OpwrightError, SourcesRefused, ToolkitMissing
from opwright.settings import Settings
from tests.extensions.conftest import WriteSource, returning

LIBRARY = {"is_python_module": False}

# files, options, the class and the words of the refusal
REFUSALS: dict[str, tuple[dict[str, str], dict[str, Any], type[OpwrightError], str]] = {
    "no source": ({}, {}, SourcesRefused, r"there is no source to build\nhint: name at least one \.cpp or \.cu file"),
    "missing file": (
        {"gone.cpp": ""},
        {},
        SourcesRefused,
        r"there is no source .*gone\.cpp\nhint: paths are relative to",
    ),
    "twins": (
        {"x.cpp": "1", "x.cu": "1"},
        {},
        SourcesRefused,
        r"x\.cpp and x\.cu differ only in their suffix, so .*\nhint: rename one of them, for example to x_cuda\.cu",
    ),
    "header": (
        {"a.h": "1"},
        {},
        SourcesRefused,
        r"the language of .*a\.h is unknown: .* '\.h'\nhint: known .* \.cpp.*",
    ),
    "sycl source": ({"a.sycl": "1"}, {}, SourcesRefused, r"SYCL sources are not built here: .*\nhint: torch\.utils"),
    "hip source": ({"a.hip": "1"}, {}, SourcesRefused, r"HIP sources are not built here: .*\nhint: torch\.utils"),
    "sycl": (
        {"a.cpp": "1"},
        {"with_sycl": True},
        SourcesRefused,
        r"SYCL sources are not built here\nhint: torch\.utils",
    ),
    "sycl flags": ({"a.cpp": "1"}, {"extra_sycl_cflags": ["-O2"]}, SourcesRefused, "SYCL sources are not built here"),
    "module and program": (
        {"a.cpp": "1"},
        {"is_standalone": True},
        SourcesRefused,
        r"cannot be both a Python module and a program\nhint: pass is_python_module=False",
    ),
    "flags as a text": (
        {"a.cpp": "1"},
        {"extra_cflags": "-O3 -g"},
        SourcesRefused,
        r"flags must be a list of strings, not the string '-O3 -g'\nhint: pass \['-O3', '-g'\]",
    ),
    "compile error": (
        {"a.cpp": "\nint f() {\n  return 1\n}"},
        LIBRARY,
        BuildFailed,
        r"^\S*a\.cpp:3: expected .*, building bad",
    ),
    "several errors": ({"a.cpp": "a;\nb;\nc;"}, LIBRARY, BuildFailed, r"^\S*a\.cpp:1: .* \(and 2 more\), building bad"),
    "missing header": (
        {"a.cpp": '\n#include "gone.h"'},
        LIBRARY,
        BuildFailed,
        r"^\S*a\.cpp:2: gone\.h: No such file or directory, building bad\nhint: name the folder of gone\.h in extra",
    ),
    "error in a header": (
        {"a.cpp": '#include "b.h"\n', "b.h": "\n\nnonsense"},
        LIBRARY,
        BuildFailed,
        r"^\S*b\.h:3: .*nonsense.*, building bad",
    ),
    "missing library": (
        {"a.cpp": returning(1)},
        {"extra_ldflags": ["-lgone"], **LIBRARY},
        BuildFailed,
        r"cannot find -lgone, building bad\nhint: name the folder of libgone with extra_ldflags=",
    ),
    "two definitions": (
        {"a.cpp": returning(1), "b.cpp": returning(2)},
        LIBRARY,
        BuildFailed,
        r"multiple definition of .f., building bad\nhint: two sources define it",
    ),
    "program without main": (
        {"a.cpp": returning(1)},
        {"is_standalone": True, **LIBRARY},
        BuildFailed,
        r"undefined reference to .main., building bad\nhint: add the source that defines it",
    ),
    "no module": (
        {"a.cpp": returning(1)},
        {},
        ExtensionUnloadable,
        r"bad was built, but it defines no module\nhint: add PYBIND11_MODULE",
    ),
    "undefined symbol": (
        {"a.cpp": returning("g(1)", before="int g(int);")},
        LIBRARY,
        ExtensionUnloadable,
        r"bad was built, but nothing defines g\(int\)\nhint: add the source that defines it",
    ),
}


@pytest.mark.parametrize(("files", "options", "refusal", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_mistake_gets_one_message(
    files: dict[str, str],
    options: dict[str, Any],
    refusal: type[OpwrightError],
    words: str,
    write: WriteSource,
    settings: Settings,
    tmp_path: Path,
) -> None:
    written = [write(name, text) if text else tmp_path / name for name, text in files.items()]
    headers_of_sources = [path for path in written if path.suffix == ".h" and len(written) > 1]
    sources = [path for path in written if path not in headers_of_sources]

    with pytest.raises(refusal, match=words):
        opwright.load("bad", sources, settings=settings, **options)


@pytest.mark.parametrize("name", ["a b", "1a", "a.b", "a-b", ""])
def test_a_name_that_is_none_is_refused(name: str, write: WriteSource, settings: Settings) -> None:
    with pytest.raises(SourcesRefused, match=rf"an extension cannot be named '{name}'\nhint: use letters"):
        opwright.load(name, write("a.cpp", returning(1)), settings=settings)


def test_what_the_compiler_said_is_kept_whole(write: WriteSource, settings: Settings) -> None:
    with pytest.raises(BuildFailed) as caught:
        opwright.load("bad", write("a.cpp", "a;\nb;\n"), settings=settings)
    transcript = Path(str(caught.value.hint).partition(" are in ")[2].partition(";")[0])
    command, *said = transcript.read_text().splitlines()

    assert "-DTORCH_EXTENSION_NAME=bad" in command
    assert [line for line in said if ": error:" in line and "a.cpp:2:" in line]


def test_cuda_sources_need_a_torch_for_cuda(
    write: WriteSource, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)

    with pytest.raises(
        ToolkitMissing, match=r"this PyTorch, .*, is built without CUDA, .*\nhint: .*cuda_optional=True"
    ):
        opwright.load("bad", write("a.cu", "1"), settings=settings)


def test_cuda_that_is_optional_is_not_all(
    write: WriteSource, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)

    with pytest.raises(ToolkitMissing, match="is built without CUDA"):
        opwright.load("bad", write("a.cu", "1"), settings=settings, cuda_optional=True)


def test_cuda_sources_need_a_toolkit(
    write: WriteSource, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")

    with pytest.raises(ToolkitMissing, match=r"there is no CUDA toolkit: there is no .*bin/nvcc\nhint: pip install"):
        opwright.load("bad", write("a.cu", "1"), settings=replace(settings, cuda_home=tmp_path / "nowhere"))


@pytest.mark.parametrize("load", [opwright.load, opwright.load_inline])
def test_options_of_torch_come_in_their_order(load: Callable[..., object]) -> None:
    import inspect

    import torch.utils.cpp_extension as torchs_own

    theirs = inspect.signature(getattr(torchs_own, load.__name__)).parameters
    ours = inspect.signature(load).parameters

    known = [name for name in theirs if name in ours]  # a newer torch has more
    assert list(ours)[: len(known)] == known
    assert known[:19] == list(theirs)[:19]  # all that torch 2.13 has
    assert [ours[name].default for name in known] == [theirs[name].default for name in known]

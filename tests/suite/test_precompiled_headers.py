"""Kernels of tests are compiled with precompiled headers, which are those that lie there."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from tests.quick_compiler import FOLDER, OPTIMIZING_NOTHING, quick_compiler

SOURCE = """
#define emitted first
#include "opwright/kernel.h"
#include "opwright/beside.h"
#undef emitted
#include "opwright/kernel.h"
extern "C" int value() { return VALUE + BESIDE; }
"""


@pytest.fixture
def headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of headers that is taken for that of the package."""
    folder = tmp_path / "include" / "opwright"
    folder.mkdir(parents=True)
    monkeypatch.setattr("tests.quick_compiler.INCLUDE_DIRECTORY", folder.parent)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "source.cpp").write_text(SOURCE)
    return folder


def value_of(headers: Path, value: object, *flags: str, apart: bool = True) -> int:
    """What a kernel computes whose header has a value."""
    (headers / "beside.h").write_text("#pragma once\n#define BESIDE 10\n")
    (headers / "kernel.h").write_text(f'#pragma once\n#include "opwright/beside.h"\n#define VALUE {value}\n')
    product = headers.parent / f"product_{len([*headers.parent.glob('*.so')])}.so"
    flags = (*(["-DOPWRIGHT_APART"] if apart else []), *flags)
    options = ("-std=c++17", "-fPIC", "-shared", *flags, f"-I{headers.parent}")
    command = (quick_compiler(OPTIMIZING_NOTHING), *options, str(headers.parents[1] / "source.cpp"), "-o", str(product))
    subprocess.run(command, check=True)
    return int(ctypes.CDLL(str(product)).value())


def test_a_changed_header_is_seen(headers: Path) -> None:
    assert [value_of(headers, value) for value in (1, 2)] == [11, 12]
    assert len([*headers.parents[1].glob("headers-*/opwright/kernel.h.gch")]) == 2


def test_headers_of_other_flags_are_passed_over(headers: Path) -> None:
    assert value_of(headers, 1) == 11
    assert value_of(headers, 1, "-DVALUE=7", "-DNDEBUG") == 11


def test_headers_that_cannot_be_precompiled_are_read(headers: Path) -> None:
    assert value_of(headers, "1\n#ifndef emitted\n#error alone\n#endif\n") == 11
    assert not [*headers.parents[1].glob("headers-*-begun/opwright/kernel.h.gch")]


def test_cuda_on_the_processor_has_its_own(headers: Path) -> None:
    (headers / "cuda").mkdir()
    (headers / "cuda" / "host_execution.h").write_text('#pragma once\n#include "opwright/kernel.h"\n')
    (headers.parents[1] / "source.cpp").write_text('#include "opwright/cuda/host_execution.h"\n' + SOURCE)
    assert value_of(headers, 5, "-DOPWRIGHT_CUDA_ON_HOST", apart=False) == 15
    assert [*headers.parents[1].glob("headers-*/opwright/cuda/host_execution.h.gch")]
    assert not [*headers.parents[1].glob("headers-*/opwright/kernel.h.gch")]

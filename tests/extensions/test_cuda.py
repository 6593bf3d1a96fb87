"""CUDA sources: with a toolkit that only pretends, everywhere; with a real one where there is one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import opwright
from opwright.errors import ArchitectureUnknown, BuildFailed, ToolkitMissing
from opwright.settings import Settings
from tests.extensions.conftest import WriteSource, returning, value_of
from tests.extensions.fake_nvcc import compiling_toolkit

HOST = '#ifndef WITH_CUDA\n#error\n#endif\nextern "C" int g();\n'


@pytest.fixture
def toolkit(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> tuple[Settings, dict[str, Any]]:
    """Settings and options to build with a toolkit that pretends, for a PyTorch that pretends to be for CUDA."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    folder = compiling_toolkit(tmp_path / "cuda")
    link = {"extra_ldflags": [f"-L{folder}", f"-Wl,-rpath,{folder}"], "is_python_module": False}
    return replace(settings, cuda_home=tmp_path / "cuda", cuda_architectures="9.0 10.0", compiler=None), link


def calls(settings: Settings, word: str) -> list[str]:
    assert settings.cuda_home is not None
    return [line for line in (settings.cuda_home / "calls").read_text().splitlines() if word in line]


def test_cpp_and_cuda_sources_are_one_library(toolkit: tuple[Settings, dict[str, Any]], write: WriteSource) -> None:
    settings, options = toolkit
    sources = [write("host.cpp", returning("g()", before=HOST)), write("device.cu", returning(7, "g"))]
    library = opwright.load("both", sources, settings=settings, **options)
    again = opwright.load("both", sources, settings=settings, **options)

    assert value_of(library) == 7
    assert again == library
    (call,) = calls(settings, "device.cu")
    assert "code=compute_100" in call
    assert calls(settings, "-dlink") == []


def test_a_header_of_a_cuda_source_counts(toolkit: tuple[Settings, dict[str, Any]], write: WriteSource) -> None:
    settings, options = toolkit
    source = write("device.cu", returning("ANSWER", before='#include "answer.cuh"'))
    values = []
    for answer in (1, 2):
        write("answer.cuh", f"#define ANSWER {answer}\n")
        values.append(value_of(opwright.load("one", source, settings=settings, **options)))

    assert values == [1, 2]


def test_relocatable_device_code_is_linked(toolkit: tuple[Settings, dict[str, Any]], write: WriteSource) -> None:
    settings, options = toolkit
    sources = [write(f"{name}.cu", returning(7, name)) for name in "ab"]
    library = opwright.load("linked", sources, extra_cuda_cflags=["-rdc=true"], settings=settings, **options)

    assert value_of(library, "device_linked") == 2
    assert len(calls(settings, "-dlink")) == 1


def test_an_architecture_that_is_unknown_is_refused_before_anything_is_built(
    toolkit: tuple[Settings, dict[str, Any]], write: WriteSource
) -> None:
    settings, options = toolkit
    wanting = replace(settings, cuda_architectures="6.0")

    with pytest.raises(ArchitectureUnknown, match=r"nvcc 13\.0 does not compile for compute capability 6\.0"):
        opwright.load("old", write("a.cu", ""), settings=wanting, **options)


def test_a_toolkit_of_another_major_version_is_refused(
    toolkit: tuple[Settings, dict[str, Any]], write: WriteSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, options = toolkit
    monkeypatch.setattr(torch.version, "cuda", "12.8")

    with pytest.raises(ToolkitMissing, match=r"is 13\.0, but PyTorch is built for 12\.8\nhint: set CUDA_HOME"):
        opwright.load("old", write("a.cu", ""), settings=settings, **options)


DEVICE = "__device__ float twice(float x) { return 2 * x; }\n"
KERNEL = """
extern __device__ float twice(float);
__global__ void kernel(float* x) { *x = twice(*x); }
extern "C" int run() { kernel<<<1, 1>>>(nullptr); return static_cast<int>(cudaGetLastError()); }
"""


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_a_real_nvcc_links_relocatable_code_and_says_what_needs_it(
    toolkit: tuple[Settings, dict[str, Any]], write: WriteSource
) -> None:
    settings, options = toolkit
    real = replace(settings, cuda_home=None, cuda_architectures="9.0")
    sources = [write("kernel.cu", KERNEL), write("device.cu", DEVICE)]
    library = opwright.load("real", sources, extra_cuda_cflags=["-rdc=true"], settings=real, **options)

    # Without a driver the launch is refused, by number; the library has all its symbols.
    assert value_of(library, "run") >= 0
    with pytest.raises(BuildFailed, match=r"Unresolved extern function .*\nhint: device code that calls"):
        opwright.load("real", sources, settings=real, **options)

"""The libraries of a package: every kernel for every level, and nothing to be seen from outside."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from opwright.errors import BuildFailed, CudaCompilerMissing, WheelUnsupported
from opwright.settings import Settings
from opwright.toolchain.bundle import Bundle, build_bundle
from opwright.toolchain.cpu_levels import CpuLevel, cpu_levels
from opwright.toolchain.gpu.architectures import for_others
from opwright.toolchain.gpu.nvrtc import find_nvrtc
from opwright.toolchain.recipe import INCLUDE_DIRECTORY
from opwright.toolchain.source import Source
from tests.toolchain.conftest import WriteScript, returning

NAMESPACE = (
    'extern "C" __attribute__((visibility("default"))) const char* opwright_{}() {{ return OPWRIGHT_NAMESPACE; }}'
)
BUNDLE = Bundle(
    name="mine",
    namespace="my_kernels",
    kernels=(Source("one", NAMESPACE.format("cpu_level")), replace(returning(2), name="two")),
    registration=Source("registration", NAMESPACE.format("load_failure")),
    levels=(CpuLevel("fast", ("-DFAST",)), CpuLevel("plain", ("-DPLAIN",))),
)


def text_of(library: Path, function: str) -> bytes:
    asked = getattr(ctypes.CDLL(str(library)), function)
    asked.restype = ctypes.c_char_p
    return bytes(asked())


def test_there_is_a_library_for_each_level_and_one_that_registers(
    settings: Settings, write_script: WriteScript, tmp_path: Path
) -> None:
    script = write_script()
    settings = replace(settings, compiler=str(script.path))
    libraries = build_bundle(BUNDLE, tmp_path, settings)

    assert [library.name for library in libraries] == ["fast.so", "plain.so", "mine.so"]
    assert [script.calls(flag) for flag in ("-DFAST", "-DPLAIN")] == [3, 4]  # also what kernels share
    native = [line for line in script.log.read_text().splitlines() if "-march=native" in line]
    assert all("-fsyntax-only" in line for line in native)  # it is asked about, and nothing is built for it
    assert text_of(libraries[0], "opwright_cpu_level") == b"my_kernels"
    assert text_of(libraries[2], "opwright_load_failure") == b"my_kernels"
    names = subprocess.run(["nm", "-D", "--defined-only", *libraries], capture_output=True, text=True, check=True)
    assert " f\n" not in names.stdout  # of the second kernel


def test_kernels_for_gpus_are_a_library_for_each_source(settings: Settings, tmp_path: Path) -> None:
    try:
        find_nvrtc()
    except CudaCompilerMissing as missing:
        pytest.skip(missing.fact)
    kernel = 'extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 1; }'
    source = Source(
        "fill", '#include "opwright/cuda/kernels.h"\nextern const void* use = opwright::kernel_images;', kernel
    )
    bundle = replace(BUNDLE, kernels=(), cuda=(source,))
    *_, library = build_bundle(bundle, tmp_path, for_others("8.0", settings))

    assert library == tmp_path / "cuda/fill.so"
    content = library.read_bytes()
    assert content.count(b"\x7fELF") == 2  # it, and the machine code
    assert b".target sm_80\n" in content
    assert str(INCLUDE_DIRECTORY).encode() not in content


def test_what_was_compiled_is_compiled_once(settings: Settings, write_script: WriteScript, tmp_path: Path) -> None:
    script = write_script()
    settings = replace(settings, compiler=str(script.path))
    build_bundle(BUNDLE, tmp_path, settings)
    calls = script.calls(" -c ")
    build_bundle(BUNDLE, tmp_path, settings)
    assert script.calls(" -c ") == calls == 7


def test_what_cannot_be_linked_is_refused(settings: Settings, write_script: WriteScript, tmp_path: Path) -> None:
    script = write_script('case "$*" in *plain.so*) echo "ld: no space"; exit 1;; esac')
    with pytest.raises(BuildFailed, match=r"linking plain\.so failed\nld: no space"):
        build_bundle(BUNDLE, tmp_path, replace(settings, compiler=str(script.path)))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_better_level_has_all_that_a_lesser_one_has(machine: str) -> None:
    levels = cpu_levels(machine)
    for better, lesser in itertools.pairwise(levels):
        assert set(better.features) > set(lesser.features)
    assert levels[-1].capability == ""


def test_another_architecture_is_refused() -> None:
    with pytest.raises(WheelUnsupported, match="wheels are built for x86_64 and aarch64, and this machine is riscv64"):
        cpu_levels("riscv64")

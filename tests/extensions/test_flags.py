"""What compilers are told, beside what `torch.utils.cpp_extension` tells them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import torch
import torch.utils.cpp_extension as torchs_own

from opwright.extensions import flags
from opwright.extensions.plan import make_plan
from opwright.extensions.request import Request
from opwright.extensions.sources import source_files
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.gpu.toolkit import CudaToolkit
from opwright.toolchain.headers.torch_build import TORCH
from tests.extensions.conftest import WriteSource

# What opwright adds on purpose: it optimizes, says that CUDA is there, and always has PTX.
OURS = {"-O2", "-DWITH_CUDA"}


@pytest.fixture
def toolkit(tmp_path: Path) -> CudaToolkit:
    root = tmp_path / "cuda"
    for name in ("bin/nvcc", "include/cuda_runtime.h", "lib64/libcudart.so"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    return CudaToolkit(
        root / "bin/nvcc", root, "13.0", root / "include", root / "lib64/libcudart.so", ("8.0", "9.0", "10.0")
    )


def ninja_flags(path: Path) -> dict[str, list[str]]:
    """The variables of a ninja file, as words."""
    pairs = [line.split(" = ", 1) for line in path.read_text().splitlines() if " = " in line and line[0] != " "]
    return {name: shlex.split(text) for name, text in pairs}


def written_by_torch(
    directory: Path, sources: list[Path], monkeypatch: pytest.MonkeyPatch, **options: object
) -> dict[str, list[str]]:
    """What torch.utils.cpp_extension would have ninja do; ninja itself is not run."""
    monkeypatch.setattr(torchs_own, "_run_ninja_build", lambda *args, **kwargs: None)
    monkeypatch.setattr(torchs_own, "verify_ninja_availability", lambda: None)
    monkeypatch.setattr(torchs_own, "get_compiler_abi_compatibility_and_version", lambda compiler: (True, "12"))
    directory.mkdir()
    names = ("extra_cflags", "extra_cuda_cflags", "extra_sycl_cflags", "extra_ldflags", "extra_include_paths")
    torchs_own._write_ninja_file_and_build_library(
        name="both",
        sources=[str(source) for source in sources],
        build_directory=str(directory),
        verbose=False,
        with_sycl=False,
        is_standalone=False,
        **{**{each: [] for each in names}, **options},
    )
    return ninja_flags(directory / "build.ninja")


def test_cpp_sources_get_the_flags_of_torch(
    write: WriteSource, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write("a.cpp", "")
    wishes = {"extra_cflags": ["-DX=1"], "extra_ldflags": ["-lm"], "extra_include_paths": [str(tmp_path)]}
    theirs = written_by_torch(tmp_path / "ninja", [source], monkeypatch, with_cuda=False, **wishes)
    request = Request(
        "both", source_files([source]), cpp_flags=("-DX=1",), link_flags=("-lm",), include_directories=(tmp_path,)
    )
    plan = make_plan(request, settings)
    compiler = find_compiler(settings)

    assert set(plan.compilations[0].command) - set(compiler.command) == set(theirs["cflags"]) | {"-O2"}
    assert set(plan.link[1]) == set(theirs["ldflags"])


def test_cuda_sources_get_the_flags_of_torch(
    write: WriteSource, settings: Settings, toolkit: CudaToolkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torchs_own, "CUDA_HOME", str(toolkit.root))
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0 9.0+PTX")
    source = write("a.cu", "")
    theirs = written_by_torch(tmp_path / "ninja", [source], monkeypatch, with_cuda=True)
    request = Request("both", source_files([source]))
    chosen = Settings(tmp_path, cuda_architectures="8.0 9.0+PTX")
    ours = flags.cuda_flags(request, toolkit, find_compiler(settings), chosen)

    assert set(ours) - OURS == {word.strip("'") for word in theirs["cuda_cflags"]}
    assert set(theirs["ldflags"]) - set(flags.link_flags(request, toolkit)) == {
        f"-L{toolkit.runtime.parent}",
        "-lcudart",
    }
    assert str(toolkit.runtime) in flags.link_flags(request, toolkit)


@pytest.mark.parametrize("word", ["-I/home/research/include", "-Xptxas=-v", "-DSEARCH=1"])
def test_a_word_that_contains_arch_chooses_no_architecture(
    word: str, write: WriteSource, settings: Settings, toolkit: CudaToolkit
) -> None:
    request = Request("both", source_files([write("a.cu", "")]), cuda_flags=(word,))
    ours = flags.cuda_flags(request, toolkit, find_compiler(settings), settings)

    assert "-gencode=arch=compute_100,code=compute_100" in ours


@pytest.mark.parametrize("word", ["-arch=sm_90", "-gencode=arch=compute_90,code=sm_90", "--gpu-architecture=sm_90"])
def test_architectures_among_the_flags_win(
    word: str, write: WriteSource, settings: Settings, toolkit: CudaToolkit
) -> None:
    request = Request("both", source_files([write("a.cu", "")]), cuda_flags=(word, "-rdc=true"))
    ours = flags.cuda_flags(request, toolkit, find_compiler(settings), settings)

    assert [flag for flag in ours if "sm_" in flag] == [word]
    assert word in flags.device_link_flags(request, toolkit, settings)


@pytest.mark.parametrize(
    ("words", "relocatable"),
    [
        (("-rdc=true",), True),
        (("-rdc", "true"), True),
        (("-dc",), True),
        (("--relocatable-device-code=true",), True),
        (("-rdc=false",), False),
        (("-O3",), False),
    ],
)
def test_relocatable_device_code_is_recognized(
    words: tuple[str, ...], relocatable: bool, write: WriteSource, toolkit: CudaToolkit
) -> None:
    request = Request("both", source_files([write("a.cu", "")]), cuda_flags=words)

    assert request.relocatable == relocatable
    assert ("-lcudadevrt" in flags.link_flags(request, toolkit)) == relocatable


def test_a_standard_of_the_user_replaces_ours(write: WriteSource, settings: Settings) -> None:
    request = Request("both", source_files([write("a.cpp", "")]), cpp_flags=("-std=c++17",))

    assert [flag for flag in flags.cpp_flags(request, None) if flag.startswith("-std")] == ["-std=c++17"]


def test_a_program_finds_torch_and_needs_no_python(write: WriteSource) -> None:
    words = flags.link_flags(Request("tool", source_files([write("a.cpp", "")]), kind="program"), None)

    assert f"-Wl,-rpath,{TORCH / 'lib'}" in words
    assert {"-shared", "-ltorch_python"}.isdisjoint(words)

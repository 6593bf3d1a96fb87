from __future__ import annotations

import importlib.util
import shutil
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from opwright.errors import BuildFailed, CudaCompilerMissing
from opwright.toolchain.gpu import nvrtc
from opwright.toolchain.gpu.nvrtc import compile_cuda, find_nvrtc
from opwright.toolchain.recipe import INCLUDE_DIRECTORY

SCALE = """
struct scale_arguments { const float* x; float* y; long long count; };
extern "C" __global__ void scale(const __grid_constant__ scale_arguments a) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < a.count) a.y[i] = 2 * a.x[i] + 1;
}
"""


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_machine_code_without_a_gpu(architecture: str) -> None:
    image = compile_cuda(SCALE, architecture)

    assert image.startswith(b"\x7fELF")
    assert b"scale" in image


def test_ptx_keeps_products_and_sums_apart() -> None:
    ptx = compile_cuda(SCALE, "compute_90").decode()

    assert ".target sm_90" in ptx
    assert ".entry scale(" in ptx
    assert "mul" in ptx or "add" in ptx
    assert "fma" not in ptx


def test_headers_of_cuda_and_of_a_folder_are_found(tmp_path: Path) -> None:
    (tmp_path / "answer.h").write_text("#define ANSWER 42\n")
    text = '#include <cuda_bf16.h>\n#include "answer.h"\nextern "C" __global__ void k(int* x) { *x = ANSWER; }'

    assert "42" in compile_cuda(text, "compute_80", tmp_path).decode()


def test_an_error_names_the_file_and_the_line() -> None:
    with pytest.raises(BuildFailed) as refusal:
        compile_cuda(SCALE.replace("a.count", "a.number"), "sm_90", INCLUDE_DIRECTORY, name="/cache/scale.cu")

    assert 'compiling /cache/scale.cu for sm_90 failed\n  /cache/scale.cu:5: error: class "scale_arguments" has no' in (
        refusal.value.fact
    )


def test_an_unknown_architecture_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(BuildFailed, match=r"NVRTC \d+\.\d+ does not compile for sm_12\nhint: it compiles for .*90"):
        compile_cuda(SCALE, "sm_12")


def test_a_wrong_option_is_shown() -> None:
    with pytest.raises(BuildFailed, match="unrecognized option --no-such"):
        compile_cuda(SCALE, "sm_90", flags=("--no-such",))


def wheels_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package folder `nvidia` be this one alone, and no toolkit be installed."""
    spec = ModuleSpec("nvidia", None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(nvrtc, "USUAL_PLACE", folder / "usual")


LAYOUTS = {"CUDA 13": ("cu13/lib", "cu13/include"), "CUDA 12": ("cuda_nvrtc/lib", "cuda_runtime/include")}


@pytest.mark.parametrize(("library", "headers"), LAYOUTS.values(), ids=LAYOUTS)
def test_both_layouts_of_wheels_are_known(
    library: str, headers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = find_nvrtc().path
    (tmp_path / library).mkdir(parents=True)
    (tmp_path / library / real.name).symlink_to(real)
    (tmp_path / headers).mkdir(parents=True)
    (tmp_path / headers / "cuda_fp16.h").touch()
    wheels_in(tmp_path, monkeypatch)

    found = find_nvrtc()

    assert found.path == tmp_path / library / real.name
    assert found.headers == tmp_path / headers


def test_a_toolkit_serves_where_there_is_no_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libnvrtc.so").symlink_to(find_nvrtc().path)
    wheels_in(tmp_path / "none", monkeypatch)

    assert find_nvrtc(tmp_path).path == tmp_path / "lib64" / "libnvrtc.so"


def test_the_one_with_the_major_version_of_torch_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = find_nvrtc()
    for major, folder in ((12, "cuda_nvrtc/lib"), (13, "cu13/lib")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"libnvrtc.so.{major}").symlink_to(real.path)
    wheels_in(tmp_path, monkeypatch)
    names = {}
    for version in (None, "12.8", "13.0"):
        monkeypatch.setattr(nvrtc.torch.version, "cuda", version)
        names[version] = find_nvrtc().path.name

    assert names == {None: "libnvrtc.so.13", "12.8": "libnvrtc.so.12", "13.0": "libnvrtc.so.13"}


def test_without_one_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels_in(tmp_path, monkeypatch)

    with pytest.raises(CudaCompilerMissing, match=r"^there is no NVRTC.*\nhint: pip install nvidia-cuda-nvrtc"):
        find_nvrtc()


def test_one_that_cannot_be_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "cu13/lib/libnvrtc.so.13"
    library.parent.mkdir(parents=True)
    shutil.copy(__file__, library)
    wheels_in(tmp_path, monkeypatch)

    with pytest.raises(CudaCompilerMissing, match=r"libnvrtc\.so\.13 cannot be loaded: "):
        find_nvrtc()

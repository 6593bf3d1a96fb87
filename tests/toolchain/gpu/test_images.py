"""Libraries with CUDA kernels: compiled for GPUs and embedded, or compiled for the processor and run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from opwright.binding.variants.launcher import load_launcher
from opwright.errors import BuildFailed, CudaCompilerMissing
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.gpu import images, nvrtc
from opwright.toolchain.source import Source
from tests.executables import write_executable
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING
from tests.suite.nights import mostly_at_night

ARGUMENTS = "struct twice_arguments { const float* x; float* y; long long count; };"
DEVICE = f"""{ARGUMENTS}
extern "C" __global__ void twice(const __grid_constant__ twice_arguments a) {{
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < a.count) a.y[i] = 2 * a.x[i];
}}
"""
HOST = f"""#include "opwright/cuda/launch.h"
namespace opwright::emitted {{
{ARGUMENTS}
static cuda::Kernel twice_kernels[] = {{{{kernel_images, "twice"}}}};
static bool launcher(const Tensor* given, const Size*, Tensor* made) {{
  const Tensor& x = given[0];
  if (!x.is(float32, 1)) return false;
  const Size sizes[] = {{x.size(0)}};
  Tensor y = allocate(float32, sizeof(float), sizes, 1);
  const twice_arguments arguments = {{x.at<const float>(0), y.at<float>(0), x.size(0)}};
  cuda::launch(twice_kernels[0], (x.size(0) + 63) / 64, 64, arguments);
  made[0] = static_cast<Tensor&&>(y);
  return true;
}}
static void on_stack(StableIValue* stack, uint64_t, uint64_t) {{
  const Tensor given[] = {{take(stack[0])}};
  Tensor made[1];
  const cuda::Call call(given);
  finish(stack, launcher(given, nullptr, made), made);
}}
static const Registration registration("NAME(Tensor x) -> Tensor", "NAME", on_stack);
}}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    compiler = keeping_compiler(OPTIMIZING_NOTHING)
    return Settings(tmp_path / "cache", compiler, cuda_architectures="8.0;9.0+PTX")


def twice(name: str, device: str = DEVICE) -> Source:
    return Source(name, HOST.replace("NAME", name), device)


def test_machine_code_and_ptx_are_in_the_library_and_beside_it(settings: Settings) -> None:
    (library,) = build([twice("twice_gpu")], settings)
    beside = {path.name: path.read_bytes() for path in library.parent.iterdir()}

    assert set(beside) == {
        *("twice_gpu.cpp", "twice_gpu.cu", "twice_gpu_device.cpp", "twice_gpu.so", "stamp.json"),
        *("twice_gpu.sm_80.cubin", "twice_gpu.sm_90.cubin", "twice_gpu.compute_90.ptx"),
    }
    assert all(image in beside["twice_gpu.so"] for name, image in beside.items() if name.endswith(("cubin", "ptx")))


def test_the_library_declines_what_is_not_on_a_gpu(settings: Settings) -> None:
    (library,) = build([twice("twice_declining")], settings)

    assert load_launcher(library, "twice_declining")(torch.ones(5)) is None


def test_on_the_host_the_same_sources_serve_cpu_tensors(settings: Settings) -> None:
    (library,) = build([twice("twice_on_host")], replace(settings, cuda_on_host=True))
    kernel = load_launcher(library, "twice_on_host")
    x = torch.arange(150.0)

    torch.testing.assert_close(kernel(x), 2 * x, rtol=0, atol=0)
    assert kernel(torch.ones(0)).shape == (0,)
    assert kernel(torch.ones(5).double()) is None


def test_what_a_kernel_waits_for_in_vain_is_raised_by_the_call(settings: Settings) -> None:
    device = DEVICE.replace("if (i <", "if (threadIdx.x < 5) __syncthreads();\n  if (i <")
    (library,) = build([twice("twice_in_vain", device)], replace(settings, cuda_on_host=True))

    with pytest.raises(RuntimeError, match=r"kernel twice, block \(0, 0, 0\): thread \(0, 0, 0\) waits at the barrier"):
        load_launcher(library, "twice_in_vain")(torch.ones(70))


def test_a_warm_cache_loads_no_compiler(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    cold = build([twice("twice_warm")], settings)
    monkeypatch.setattr(images, "compile_cuda", None)
    monkeypatch.setattr(images, "find_nvrtc", None)

    assert build([twice("twice_warm")], settings) == cold


CHANGES = {
    "kernels": (twice("twice_key", DEVICE + "\n"), {}),
    "architectures": (twice("twice_key"), {"cuda_architectures": "9.0"}),
    "host execution": (twice("twice_key"), {"cuda_on_host": True}),
}


@pytest.mark.parametrize("changed", mostly_at_night(CHANGES, by_day=1))
def test_a_change_gives_another_library(changed: str, settings: Settings) -> None:
    source, change = CHANGES[changed]

    assert build([source], replace(settings, **change)) != build([twice("twice_key")], settings)


def test_kernels_that_do_not_compile_are_kept_and_named(settings: Settings) -> None:
    with pytest.raises(BuildFailed, match=r'failed/.*/wrong\.cu:4: error: class "twice_arguments" has no') as refusal:
        build([twice("wrong", DEVICE.replace("a.count", "a.number"))], settings)
    kept = Path(str(refusal.value.fact).split()[1])

    assert "a.number" in kept.read_text()
    assert not list((settings.cache_directory / "building").iterdir())


def test_without_a_compiler_of_cuda_the_remedy_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (images, nvrtc):
        monkeypatch.setattr(module, "nvrtc_candidates", lambda _: iter(()))

    with pytest.raises(CudaCompilerMissing, match="pip install nvidia-cuda-nvrtc"):
        build([twice("nothing")], settings)


def nvcc(folder: Path, body: str) -> str:
    """A script that stands for nvcc: the file to write is its last word."""
    return str(write_executable(folder / "nvcc", f"#!/bin/sh\nfor made; do :; done\n{body}\n"))


def test_nvcc_compiles_where_it_is_asked_for(settings: Settings, tmp_path: Path) -> None:
    settings = replace(settings, cuda_compiler=nvcc(tmp_path / "bin", 'echo "made with $*" > "$made"'))
    (library,) = build([twice("twice_nvcc")], settings)

    code, ptx = (library.parent / f"twice_nvcc.{target}" for target in ("sm_90.cubin", "compute_90.ptx"))
    assert "--gpu-architecture=sm_90 --cubin" in code.read_text()
    assert "--gpu-architecture=compute_90 --ptx" in ptx.read_text()
    assert "--fmad=false" in code.read_text()


def test_what_nvcc_refuses_is_shown_with_the_line(settings: Settings, tmp_path: Path) -> None:
    body = 'for word; do case "$word" in *.cu) echo "$word(7): error: no such thing" >&2; esac; done; exit 1'
    settings = replace(settings, cuda_compiler=nvcc(tmp_path / "bin", body))

    with pytest.raises(BuildFailed, match=r"failed/.*/twice_refused\.cu:7: error: no such thing"):
        build([twice("twice_refused")], settings)


def test_an_nvcc_that_is_not_there_is_named(settings: Settings) -> None:
    with pytest.raises(
        CudaCompilerMissing, match=r"/no/nvcc cannot compile CUDA kernels: it was not found\nhint: name"
    ):
        build([twice("twice_missing")], replace(settings, cuda_compiler="/no/nvcc"))

"""CUDA kernels by hand: compiled without a GPU, run on the processor, launched by a driver that only writes down."""

from __future__ import annotations

import ctypes
import re
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

import opwright
from opwright.errors import ImplementationRefused, NoKernel, RungMissing, WrongDeclaration
from opwright.handwritten.kernels import cuda_kernel
from opwright.handwritten.kernels.cuda_kernel import CudaLoader, Driver, Launched
from opwright.handwritten.kernels.instance import Instance
from opwright.toolchain.gpu.nvrtc import find_nvrtc
from tests.handwritten.planted import made
from tests.systems.by_hand import FOLDER, by_hand

KERNEL = """\
template <class T>
__global__ void forward(const T* x, const T* y, T* z, int64_t n) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < n) z[k] = 3 * x[k] - y[k];
}
"""
WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    try:
        find_nvrtc()
    except opwright.errors.CudaCompilerMissing as missing:
        pytest.skip(missing.fact)


@WITHOUT_GPU
@pytest.mark.parametrize(("file", "name"), [("linear", "add_bias"), ("lltm", "lltm_cell")])
def test_the_examples_compile_and_say_that_there_is_no_gpu(file: str, name: str) -> None:
    (rung,) = [rung for rung in by_hand(file, name).rungs() if rung.name == "cuda"]
    assert rung.origin == "written"
    assert not rung.available
    assert re.fullmatch(r"\w+ compiles for sm_90, and there is no GPU here", rung.reason)


@WITHOUT_GPU
def test_a_mistake_is_told_with_its_line() -> None:
    operator = made("cuda_mistake")
    operator.implement("cuda", source=KERNEL.replace("blockIdx.x", "blockIdx.w"))
    with pytest.raises(RungMissing, match=r'<source of cuda_mistake>:3: .*has no member "w"'):
        operator.on("cuda")


@pytest.mark.parametrize(
    ("sources", "operator"), [("add_bias.cu", ("linear", "add_bias")), ("lltm_cell.cu", ("lltm", "lltm_cell"))]
)
def test_the_examples_run_on_the_processor(sources: str, operator: tuple[str, str]) -> None:
    """The text of the kernel is right; that a GPU computes so is not what this says."""
    reference = by_hand(*operator).reference
    made = opwright.Operator(reference, name=f"tests::{operator[1]}_on_the_processor")
    both = {"forward": "lltm_cell_forward", "backward": "lltm_cell_backward"}
    by_rows = {"forward": "add_bias", "blocks": lambda product, bias: (1, product.shape[0])}
    made.implement("cpp", sources=[FOLDER / sources], **(both if "lltm" in sources else by_rows))
    sizes = ((3, 12), (3, 4)) if "lltm" in sources else ((3, 12), (12,))
    given = [torch.randn(*size, dtype=torch.float64, requires_grad=True) for size in sizes]
    torch.testing.assert_close(made.on("cpp")(*given), reference(*given))
    assert torch.autograd.gradcheck(made.on("cpp"), given)


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(WrongDeclaration, match="forward is not a __global__ function"):
        made().implement("cuda", source=KERNEL.replace("__global__ ", ""))


def test_grids_that_cannot_be_launched_are_refused() -> None:
    with pytest.raises(ImplementationRefused, match="a block of 2048 threads"):
        made().implement("cuda", source=KERNEL, threads=2048)
    operator = made("grid")
    operator.implement("cpp", source=KERNEL, blocks=lambda x, y: 0)
    with pytest.raises(ImplementationRefused, match=r"a grid of \(0, 1, 1\) blocks"):
        operator(torch.ones(2), torch.ones(2))


STUB = """\
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
static float seen[4];
static std::string steps;
static thread_local long context_of_thread = 0, context_before = 0;
static thread_local int mode_of_thread = 0;
static std::mutex writing;  // threads call without Python's lock
static int note(const std::string& step) {
  const std::lock_guard<std::mutex> lock(writing);
  return steps += step + "\\n", 0;
}
extern "C" {
int cuInit(unsigned) { return note("init"); }
int cuDeviceGet(int* device, int index) { return *device = 100 + index, index < 2 ? 0 : 101; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = (void*)(long)(2 * device);
  return note("retain " + std::to_string(device));
}
int cuCtxGetCurrent(void** context) { return *context = (void*)context_of_thread, 0; }
int cuCtxSetCurrent(void* context) { return context_of_thread = (long)context, note("set"); }
int cuCtxPushCurrent_v2(void* context) {
  context_before = context_of_thread, context_of_thread = (long)context;
  return note("push " + std::to_string(context_of_thread));
}
int cuCtxPopCurrent_v2(void**) { return context_of_thread = context_before, note("pop"); }
int cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = mode_of_thread;
  mode_of_thread = *mode, *mode = before;
  return note("mode " + std::to_string(mode_of_thread));
}
int cuModuleLoadData(void** module, const void* image) {
  *module = (void*)image;
  note("load on " + std::to_string(context_of_thread));
  return std::strcmp((const char*)image, "cubin") ? 200 : 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) { *function = (void*)name; return 0; }
int cuGetErrorString(int status, const char** text) {
  *text = status == 101 ? "invalid device ordinal" : "device kernel image is invalid";
  return 0;
}
int cuLaunchKernel(void* f, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared, void* stream, void** given, void** extra) {
  note("launch on " + std::to_string(context_of_thread));
  seen[0] = bx * 100 + by * 10 + bz, seen[1] = tx * 100 + ty * 10 + tz;
  seen[2] = *(float*)given[0], seen[3] = *(long long*)given[1] + (long long)stream;
  return 0;
}
float* what_was_seen() { return seen; }
const char* what_was_done() { static std::string done; return done = steps, steps.clear(), done.c_str(); }
}
"""
GRID = (1, 2, 3, 4, 5, 6)


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    (folder / "stub.cpp").write_text(STUB)
    subprocess.run(["g++", "-shared", "-fPIC", "stub.cpp", "-o", "stub.so"], cwd=folder, check=True)
    return folder / "stub.so"


def done(stub: Path) -> list[str]:
    """What the driver was asked since the last look."""
    what = ctypes.CDLL(str(stub)).what_was_done
    what.restype = ctypes.c_char_p
    text: bytes = what()
    return text.decode().splitlines()


def loaded(context: int) -> list[str]:
    """What loading a kernel asks of the driver."""
    return ["mode 2", f"load on {context}", "mode 0"]


def test_a_launch_hands_the_driver_grid_stream_and_parameters(stub: Path) -> None:
    driver = Driver(str(stub))
    function = driver.load(b"cubin")
    driver.launch(function, GRID, 1000, [ctypes.c_float(2.5), ctypes.c_int64(7)])
    seen = ctypes.CDLL(str(stub)).what_was_seen
    seen.restype = ctypes.POINTER(ctypes.c_float)
    assert seen()[:4] == [123, 456, 2.5, 1007]


def test_what_the_driver_refuses_is_told(stub: Path) -> None:
    done(stub)
    with pytest.raises(NoKernel, match=r"loading a kernel failed: device kernel image is invalid \(200\)"):
        Driver(str(stub)).load(b"nothing")
    assert done(stub) == ["init", *loaded(0)]
    with (
        pytest.raises(NoKernel, match=r"finding cuda:5 failed: invalid device ordinal \(101\)"),
        Driver(str(stub)).current(5),
    ):
        pass


def test_no_driver_is_told() -> None:
    with pytest.raises(opwright.errors.CudaCompilerMissing, match="NVIDIA's driver is not installed here"):
        Driver("libcuda-of-nobody.so").load(b"")


def test_a_context_is_made_current_only_where_it_is_not_and_for_the_block(stub: Path) -> None:
    driver = Driver(str(stub))
    done(stub)
    with driver.current(1), driver.current(1):
        pass
    assert done(stub) == ["init", "retain 101", "push 202", "pop"]
    with pytest.raises(ZeroDivisionError), driver.current(1):
        raise ZeroDivisionError
    assert done(stub) == ["push 202", "pop"]


class Compiled:
    """Stands for what compiles; slowly, so that threads meet there."""

    def __init__(self) -> None:
        self.architectures: list[str] = []

    def compile(self, _: Any, architecture: str) -> bytes:
        self.architectures.append(architecture)
        time.sleep(0.05)
        return b"cubin"


def test_threads_without_a_context_load_a_kernel_once_and_launch_it(
    stub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of autograd's backward passes, in which torch may bind no context."""
    driver, compiled = Driver(str(stub)), Compiled()
    monkeypatch.setattr(cuda_kernel, "_driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: (9, index))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda index: SimpleNamespace(cuda_stream=1000 + index))
    launched = Launched(cast("CudaLoader", compiled), cast("Instance", None), [ctypes.c_float, ctypes.c_int64])
    done(stub)
    threads = [
        threading.Thread(target=launched, args=([2.5, 7], GRID, torch.device("cuda", index))) for index in (0, 1, 0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = done(stub)
    assert sorted(compiled.architectures) == ["sm_90", "sm_91"]
    for device in (100, 101):
        assert asked.count(f"load on {2 * device}") == 1
        assert asked.count(f"launch on {2 * device}") == 2
    assert asked.count("set") == asked.count("push 202") == asked.count("pop") == 2  # the first GPU's is kept

"""Kernels by hand on a GPU: those of the examples, streams, threads, and sources that nvcc compiles."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import opwright
from opwright.errors import BuildFailed, RungMissing
from tests.handwritten.planted import made
from tests.on_gpu.device import DEVICE
from tests.systems.by_hand import by_hand

RUNG = "cpp" if DEVICE == "cpu" else "cuda"  # the same text runs on the processor
ON_A_GPU = pytest.mark.skipif(DEVICE == "cpu", reason="it is about launches")
WITH_NVCC = pytest.mark.skipif(shutil.which("nvcc") is None or torch.version.cuda is None, reason="there is no nvcc")
KERNELS = """\
template <class T>
__global__ void forward(const T* x, const T* y, T* z, int64_t n) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < n) z[k] = 3 * x[k] - y[k];
}
template <class T>
__global__ void backward(const T* grad_z, T* grad_x, T* grad_y, int64_t n) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < n) grad_x[k] = 3 * grad_z[k], grad_y[k] = -grad_z[k];
}
"""
EXAMPLES = [("linear", "add_bias", ((33, 300), (300,))), ("lltm", "lltm_cell", ((17, 36), (17, 12)))]
pytestmark = pytest.mark.seconds(60)


def drawn(sizes: Sequence[tuple[int, ...]], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    made = [torch.randn(size, generator=generator, dtype=torch.float64) for size in sizes]
    return [each.to(DEVICE, dtype).requires_grad_() for each in made]


def results_of(function: Any, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Results, then gradients."""
    found = function(*given)
    found = [found] if isinstance(found, torch.Tensor) else list(found)
    incoming = [torch.arange(each.numel(), device=each.device).cos().reshape(each.shape).to(each) for each in found]
    return [*found, *torch.autograd.grad(found, given, incoming)]


def scaled(name: str, **options: Any) -> Any:
    """The operator 3x - y, by hand."""
    operator = made(name)
    operator.implement(RUNG, source=KERNELS, forward="forward", backward="backward", **options)
    return operator


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("file", "name", "sizes"), EXAMPLES)
def test_the_examples_are_their_references(file: str, name: str, sizes: Any, dtype: torch.dtype) -> None:
    operator = by_hand(file, name)
    (rung,) = [rung for rung in operator.rungs() if rung.name == RUNG]
    assert (rung.origin, rung.available) == ("written", True), rung.reason
    given = drawn(sizes, dtype)
    torch.testing.assert_close(results_of(operator.on(RUNG), given), results_of(operator.reference, given))


@pytest.mark.parametrize(("file", "name"), [("linear", "add_bias"), ("lltm", "lltm_cell")])
def test_the_gradients_of_the_examples_are_differences_of_numbers(file: str, name: str) -> None:
    sizes = ((3, 4), (4,)) if name == "add_bias" else ((3, 6), (3, 2))
    given = drawn(sizes, torch.float64)
    function = by_hand(file, name).on(RUNG)
    assert torch.autograd.gradcheck(function, given)
    assert torch.autograd.gradgradcheck(function, given)


@ON_A_GPU
def test_the_operator_itself_runs_what_is_written() -> None:
    operator = by_hand("lltm", "lltm_cell")
    given = drawn(EXAMPLES[1][2])
    operator(*given)
    assert operator.last_rung == "cuda"
    linear = by_hand("linear", "linear")  # whose function by hand adds the bias by a CUDA kernel
    of_linear = drawn(((5, 7), (6, 7), (6,)), torch.float64)
    torch.testing.assert_close(results_of(linear, of_linear), results_of(linear.reference, of_linear))


def test_arguments_of_other_layouts_are_copied() -> None:
    given = [tensor.detach().t().contiguous().t().requires_grad_() for tensor in drawn(((70, 50), (70, 50)))]
    operator = scaled("layouts_on_gpu")
    torch.testing.assert_close(results_of(operator.on(RUNG), given), results_of(operator.reference, given))


@ON_A_GPU
def test_a_kernel_runs_on_the_current_stream() -> None:
    operator = scaled("side_stream")
    x, y = (tensor.detach() for tensor in drawn(((1000, 1000), (1000, 1000))))
    operator.on("cuda")(x, y)  # which loads it
    right = operator.reference(2 * x, y)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        doubled = x * 2  # after the wait: another stream would read what is not there yet
        made_here = operator.on("cuda")(doubled, y)
        doubled.zero_()
    torch.cuda.current_stream().wait_stream(side)
    torch.testing.assert_close(made_here, right)


def in_a_new_thread(work: Callable[[], torch.Tensor]) -> torch.Tensor:
    """What a thread that has done nothing yet computes."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:  # the assertion below shows it
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert isinstance(found[0], torch.Tensor), found
    return found[0]


@ON_A_GPU
def test_a_kernel_is_the_first_thing_that_a_thread_does_on_the_gpu() -> None:
    """Such a thread has no context of the driver yet: PyTorch makes one current when it needs one."""
    operator = scaled("first_in_a_thread")
    x, y = (tensor.detach() for tensor in drawn(((8, 9), (8, 9))))
    function = operator.on("cuda")
    right = operator.reference(x, y)
    function(x, y)
    torch.testing.assert_close(in_a_new_thread(lambda: function(x, y)), right)


@ON_A_GPU
def test_a_kernel_is_loaded_by_a_thread_that_has_done_nothing_yet() -> None:
    operator = scaled("loaded_in_a_thread")
    x, y = (tensor.detach() for tensor in drawn(((8, 9), (8, 9))))
    found = in_a_new_thread(lambda: operator.on("cuda")(x, y))
    torch.testing.assert_close(found, operator.reference(x, y))


@ON_A_GPU
def test_launches_are_captured_in_a_graph() -> None:
    operator = scaled("captured")
    x, y = (tensor.detach() for tensor in drawn(((300, 40), (300, 40))))
    function = operator.on("cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        function(x, y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(x, y)
    x.mul_(5)
    graph.replay()
    torch.testing.assert_close(result, operator.reference(x, y))


def test_a_result_that_is_written_past_is_told() -> None:
    operator = made("overrun_on_gpu")
    wrong = KERNELS.replace("if (k < n) z[k]", "if (k <= n) z[k < n ? k : n]")
    operator.implement(RUNG, source=wrong, forward="forward", backward="backward", guarded=True)
    with pytest.raises(opwright.errors.ResultOverrun, match="behind the last element of 'z'"):
        operator.on(RUNG)(*(tensor.detach() for tensor in drawn(((8, 8), (8, 8)))))


@ON_A_GPU
def test_a_mistake_is_told_with_its_line() -> None:
    operator = made("mistake_on_gpu")
    operator.implement("cuda", source=KERNELS.replace("blockIdx.x", "blockIdx.w"), backward="backward")
    given = drawn(((2, 3), (2, 3)))
    with pytest.raises((BuildFailed, RungMissing), match=r'<source of mistake_on_gpu>:3: .*has no member "w"'):
        operator.on("cuda")(*given)


def test_the_checks_pass_of_what_is_written_and_fail_of_what_is_wrong() -> None:
    assert scaled("checked_on_gpu").check()
    operator = made("wrong_on_gpu")
    operator.implement(RUNG, source=KERNELS.replace("= 3 * grad_z[k]", "= 2 * grad_z[k]"), backward="backward")
    given = drawn(((4, 5), (4, 5)))
    with pytest.raises(AssertionError):
        torch.testing.assert_close(results_of(operator.on(RUNG), given), results_of(operator.reference, given))


DEVICE_CODE = """\
#include <cuda_runtime.h>
template <int times>
__global__ void kernel(const float* x, float* y, int count) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < count) y[k] = times * x[k] + 1;
}
int launch(const float* x, float* y, int count, cudaStream_t stream) {
  kernel<3><<<(count + 127) / 128, 128, 0, stream>>>(x, y, count);
  return static_cast<int>(cudaGetLastError());
}
"""
HOST_CODE = """\
#include <cuda_runtime.h>
int launch(const float* x, float* y, int count, cudaStream_t stream);
extern "C" int run(const float* x, float* y, int count, void* stream) {
  return launch(x, y, count, static_cast<cudaStream_t>(stream));
}
"""


def ran(library: str, count: int = 1000) -> None:
    """A function of a library over pointers of tensors is right, on the current stream."""
    import ctypes

    function = ctypes.CDLL(library).run
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    x = torch.randn(count, device="cuda")
    y = torch.zeros_like(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    assert function(x.data_ptr(), y.data_ptr(), count, stream.cuda_stream) == 0
    torch.cuda.current_stream().wait_stream(stream)
    torch.testing.assert_close(y, 3 * x + 1)


@WITH_NVCC
@pytest.mark.parametrize("flags", [[], ["-rdc=true"]], ids=str)
def test_sources_for_nvcc_are_loaded_and_launch(flags: list[str], tmp_path: Path) -> None:
    (tmp_path / "device.cu").write_text(DEVICE_CODE)
    (tmp_path / "host.cpp").write_text(HOST_CODE)
    sources = [tmp_path / "device.cu", tmp_path / "host.cpp"]
    library = opwright.load("launched", sources, extra_cuda_cflags=flags, is_python_module=False)
    assert isinstance(library, str)
    if torch.cuda.is_available():
        ran(library)


TENSORS = """\
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
template <class T>
__global__ void kernel(const T* x, T* y, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) y[k] = 3 * x[k] + 1;
}
torch::Tensor affine(torch::Tensor x) {
  const torch::Tensor given = x.contiguous(), made = torch::empty_like(given);
  AT_DISPATCH_FLOATING_TYPES(given.scalar_type(), "affine", [&] {
    kernel<scalar_t><<<(given.numel() + 127) / 128, 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
        given.const_data_ptr<scalar_t>(), made.mutable_data_ptr<scalar_t>(), given.numel());
  });
  return made;
}
"""


@WITH_NVCC
@pytest.mark.seconds(300)  # nvcc reads all of torch's headers
def test_inline_sources_over_tensors_are_loaded_and_launch() -> None:
    module = opwright.load_inline(
        "affine_on_gpu", "torch::Tensor affine(torch::Tensor x);", cuda_sources=TENSORS, functions=["affine"]
    )
    if torch.cuda.is_available():
        for dtype in (torch.float32, torch.float64):
            x = torch.randn(30, 50, device="cuda", dtype=dtype)
            torch.testing.assert_close(module.affine(x), 3 * x + 1)
            torch.testing.assert_close(module.affine(x.t()), 3 * x.t() + 1)

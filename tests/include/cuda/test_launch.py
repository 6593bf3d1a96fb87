"""Launching kernels, with a driver that writes down what it is asked."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import opwright
from tests.keeping_compiler import keeping_compiler

HERE = Path(__file__).parent
HEADERS = Path(opwright.__file__).parent / "include"

Steps = Callable[..., list[str]]


def compiled(source: str, output: Path, *flags: str) -> Path:
    command = [keeping_compiler("", "g++"), "-std=c++17", "-O0", *flags, f"-I{HEADERS}", str(HERE / source)]
    subprocess.run([*command, "-o", str(output)], check=True)
    return output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launch")
    compiled("fake_driver.cpp", folder / "libcuda.so.1", "-shared", "-fPIC")
    compiled("fake_torch.cpp", folder / "libtorch_cuda.so", "-shared", "-fPIC")
    compiled("launch_driver.cpp", folder / "program", "-Wall", "-Wextra", "-Werror")
    return folder


@pytest.fixture
def steps(folder: Path) -> Steps:
    """Take some steps and give back what was written down."""

    def take(*words: str, capability: int = 90, failure: str = "", libraries: Path = folder) -> list[str]:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "FAKE_CAPABILITY": str(capability)}
        environment["FAKE_FAILURE"] = failure
        command = [str(folder / "program"), *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()

    return take


LOADED = ["capture mode 2", "load code for 9.0", "get scale", "capture mode 0"]
LAUNCHED = "launch scale 3x1x1 256x1x1 0 on 200 with 7 0.5"


def test_a_kernel_is_loaded_outside_of_captures_and_launched_on_the_stream_of_torch(steps: Steps) -> None:
    assert steps("torch", "cuda:0", "scale") == ["cuInit", "retain 100", "set 100", *LOADED, LAUNCHED]


def test_it_is_loaded_once_for_a_device(steps: Steps) -> None:
    twice = steps("torch", "cuda:0", "scale", "scale")

    assert twice.count("load code for 9.0") == twice.count("get scale") == twice.count("retain 100") == 1
    assert twice.count(LAUNCHED) == 2


def test_kernels_of_a_library_are_loaded_together(steps: Steps) -> None:
    both = steps("torch", "cuda:0", "scale", "sum")

    assert both.count("load code for 9.0") == 1
    assert "launch sum 2x3x4 32x8x1 0 on 200 with 8 1.5" in both


def test_each_device_has_its_own_context_and_stream(steps: Steps) -> None:
    both = steps("torch", "cuda:0", "scale", "cuda:1", "scale", "cuda:0", "scale")

    assert [line for line in both if line.startswith(("set", "push", "pop", "launch"))] == [
        *("set 100", LAUNCHED),  # a thread without a context keeps the first one's
        *("push 101", LAUNCHED.replace("on 200", "on 201"), "pop"),
        LAUNCHED,
    ]
    assert both.count("load code for 9.0") == 2


def test_nothing_is_launched_for_no_blocks(steps: Steps) -> None:
    assert steps("cuda:0", "empty") == []


def test_much_shared_memory_is_asked_for(steps: Steps) -> None:
    assert steps("torch", "cuda:0", "large")[-2:] == [
        "attribute 8 is 100000",
        "launch scale 1x1x1 32x1x1 100000 on 200 with 7 0.5",
    ]


CHOICES = {80: "code for 8.0", 86: "code for 8.0", 89: "code for 8.0", 90: "code for 9.0", 120: "PTX for 9.0"}


@pytest.mark.parametrize("capability", CHOICES)
def test_the_image_that_fits_the_device_best_is_loaded(capability: int, steps: Steps) -> None:
    assert f"load {CHOICES[capability]}" in steps("torch", "cuda:0", "scale", capability=capability)


INVALID = r"invalid argument \(CUDA_ERROR_INVALID_VALUE\)"
REFUSALS: dict[str, tuple[dict[str, object], str]] = {
    "a driver that does not start": ({"failure": "cuInit"}, rf"cannot start the CUDA driver: {INVALID}"),
    "an image that does not load": (
        {"failure": "cuModuleLoadData"},
        rf"cannot load the kernels for sm_90 on cuda:0: {INVALID}",
    ),
    "a kernel that is not there": (
        {"failure": "cuModuleGetFunction"},
        rf"cannot load kernel scale on cuda:0: {INVALID}",
    ),
    "a launch that is refused": (
        {"failure": "cuLaunchKernel"},
        r"cannot launch kernel scale on cuda:0 with 3×1×1 blocks of 256×1×1 threads and 0 bytes of shared memory: "
        + INVALID,
    ),
    "a stream that torch does not tell": (
        {"failure": "stream"},
        "cannot launch kernel scale: PyTorch does not tell the current stream of cuda:0",
    ),
    "a device that is too old": (
        {"capability": 75},
        r"there are kernels for sm_80 sm_90 compute_80 compute_90, and none for a GPU of compute capability 7\.5",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_fails_is_raised_in_words_and_leaves_the_context_as_it_was(name: str, steps: Steps) -> None:
    circumstances, sentence = REFUSALS[name]
    lines = steps("torch", "cuda:0", "scale", **circumstances)

    assert re.fullmatch(f"raised: {sentence}", lines[-1])
    assert lines.count("pop") == sum(line.startswith("push") for line in lines)
    assert lines.count("capture mode 0") == lines.count("capture mode 2")


def test_a_failure_to_load_is_no_verdict_for_ever(steps: Steps) -> None:
    lines = steps("torch", "cuda:0", "scale", "scale", failure="cuModuleLoadData")

    assert lines.count("load code for 9.0") == 2


def test_without_a_driver_it_says_so(steps: Steps, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("not a library")
    assert steps("cuda:0", "scale", libraries=tmp_path) == [
        "raised: the driver of NVIDIA GPUs cannot be loaded (libcuda.so.1)"
    ]


def test_without_cuda_in_torch_it_says_so(steps: Steps) -> None:
    assert steps("cuda:0", "scale") == ["raised: this PyTorch is built without CUDA (libtorch_cuda.so)"]


def test_a_device_beyond_all_is_refused(steps: Steps) -> None:
    assert steps("torch", "cuda:64", "scale") == ["raised: cuda:64 is none of the 64 GPUs that kernels run on"]


@pytest.fixture(scope="module")
def with_runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as ejected projects are built: kernels are functions, which CUDA's runtime launches."""
    folder = tmp_path_factory.mktemp("runtime")
    flags = ("-DOPWRIGHT_CUDA_RUNTIME", f"-I{HERE / 'fake_runtime'}", str(HERE / "fake_torch.cpp"))
    return compiled("launch_driver.cpp", folder / "program", "-Wall", "-Wextra", "-Werror", *flags)


@pytest.fixture
def steps_with_runtime(with_runtime: Path) -> Steps:
    def take(*words: str, failure: str = "") -> list[str]:
        command, environment = [str(with_runtime), *words], {**os.environ, "FAKE_FAILURE": failure}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()

    return take


def test_the_runtime_sets_no_device_that_is_set(steps_with_runtime: Steps) -> None:
    """Setting one makes a context there."""
    assert steps_with_runtime("cuda:0", "scale") == ["launch 3x1x1 256x1x1 0 on 200"]
    assert steps_with_runtime("cuda:1", "scale") == ["set 1", "launch 3x1x1 256x1x1 0 on 201", "set 0"]


def test_the_runtime_launches_on_no_stream_but_that_of_torch(steps_with_runtime: Steps) -> None:
    assert steps_with_runtime("cuda:1", "scale", failure="stream") == [
        "set 1",
        "set 0",
        "raised: cannot launch kernel scale: PyTorch does not tell the current stream of cuda:1",
    ]


def test_a_device_that_the_runtime_does_not_know_is_named(steps_with_runtime: Steps) -> None:
    (_, told) = steps_with_runtime("cuda:64", "scale")
    assert told == "raised: cannot launch kernel scale on cuda:64: invalid device ordinal (cudaErrorInvalidDevice)"

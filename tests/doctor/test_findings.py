"""Each finding on machines that are well, and on machines where something is missing or wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from opwright.binding import native
from opwright.doctor.findings import gpu as gpu_module
from opwright.doctor.findings import matrix_products as products_module
from opwright.doctor.findings import nvrtc as nvrtc_module
from opwright.doctor.findings import processor as processor_module
from opwright.doctor.findings import trial_kernel as trial_module
from opwright.doctor.findings.cache import cache
from opwright.doctor.findings.cpp_compiler import cpp_compiler
from opwright.doctor.findings.cuda_toolkit import cuda_toolkit
from opwright.doctor.findings.gpu import gpu
from opwright.doctor.findings.hot_path import hot_path
from opwright.doctor.findings.leftovers import leftovers
from opwright.doctor.findings.matrix_products import matrix_products
from opwright.doctor.findings.nvrtc import nvrtc
from opwright.doctor.findings.processor import processor
from opwright.doctor.findings.python_headers import python_headers
from opwright.doctor.findings.torch_build import torch_build
from opwright.doctor.findings.torch_extensions import torch_extensions
from opwright.doctor.findings.trial_kernel import trial_kernel
from opwright.errors import CudaCompilerMissing
from opwright.settings import Settings
from opwright.toolchain.gpu import toolkit as toolkit_module
from opwright.toolchain.source import Source
from opwright.toolchain.storage.locks import hold
from tests.executables import write_executable
from tests.toolchain.fake_toolkit import fake_toolkit, wrapper

_PATH = list(sys.path)


@dataclass
class Machine:
    """A machine under test: what is on its PATH, its cache, and what torch says of it."""

    place: Path
    patch: pytest.MonkeyPatch
    settings: Settings
    kept: list[Any] = field(default_factory=list)

    def on_path(self, *names: str) -> None:
        """Leave only these programs on the PATH."""
        for name in names:
            if not (self.place / "bin" / name).exists():
                write_executable(self.place / "bin" / name, "#!/bin/sh\n")
        self.patch.setenv("PATH", str(self.place / "bin"))

    def choose(self, **options: Any) -> None:
        """Change settings."""
        self.settings = replace(self.settings, **options)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages")])
    monkeypatch.setattr(toolkit_module, "USUAL_PLACE", tmp_path / "usual")
    settings = Settings(tmp_path / "cache", torch_extensions=tmp_path / "torch_extensions")
    return Machine(tmp_path, monkeypatch, settings)


def well(machine: Machine) -> None:
    """Change nothing."""


def with_modules(machine: Machine) -> None:
    machine.patch.setattr(sys, "path", _PATH)


def old_torch(machine: Machine) -> None:
    machine.patch.setattr(torch, "__version__", "2.10.1")


def torch_without_headers(machine: Machine) -> None:
    machine.patch.setattr(torch, "__file__", str(machine.place / "torch" / "__init__.py"))


def no_compiler(machine: Machine) -> None:
    machine.on_path("apt-get")


def no_compiler_and_no_manager(machine: Machine) -> None:
    machine.on_path()


def a_wrong_choice(machine: Machine) -> None:
    machine.choose(compiler="/no/such/compiler")


def open_cache(machine: Machine) -> None:
    machine.settings.cache_directory.mkdir()
    machine.settings.cache_directory.chmod(0o777)


def file_for_a_cache(machine: Machine) -> None:
    machine.settings.cache_directory.write_text("")


def read_only_cache(machine: Machine) -> None:
    machine.settings.cache_directory.mkdir()
    machine.patch.setattr(os, "access", lambda path, mode: False)


def entry_open_to_all(machine: Machine) -> None:
    entry = machine.settings.cache_directory / "libraries" / "ab"
    entry.mkdir(parents=True)
    machine.settings.cache_directory.chmod(0o700)
    entry.chmod(0o777)


def entry_of_another(machine: Machine) -> None:
    machine.settings.cache_directory.mkdir(mode=0o700)
    (machine.settings.cache_directory / "planted").write_text("")
    owner, lstat = os.geteuid(), Path.lstat
    machine.patch.setattr(
        Path, "lstat", lambda path: SimpleNamespace(st_uid=owner + 1, st_mode=lstat(path).st_mode, st_size=0)
    )


def full_disk(machine: Machine) -> None:
    machine.patch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))


def killed_build(machine: Machine) -> None:
    (machine.settings.cache_directory / "building" / "key.random").mkdir(parents=True)


def failed_build(machine: Machine) -> None:
    (machine.settings.cache_directory / "failed" / "key").mkdir(parents=True)


def running_build(machine: Machine) -> None:
    killed_build(machine)
    lock = machine.settings.cache_directory / "locks" / "key.lock"
    lock.parent.mkdir()
    held = hold([lock], lambda pid: None, 1)
    held.__enter__()
    machine.kept.append(held)


def refused_kernel(machine: Machine) -> None:
    machine.patch.setattr(trial_module, "_KERNEL", Source("trial", "nonsense"))


def lying_kernel(machine: Machine) -> None:
    text = 'extern "C" __attribute__((visibility("default"))) int trial() { return 41; }'
    machine.patch.setattr(trial_module, "_KERNEL", Source("trial", text))


def no_python_headers(machine: Machine) -> None:
    machine.on_path("dnf")
    machine.patch.setattr(sysconfig, "get_path", lambda name: "/no/include")


def no_hot_path(machine: Machine) -> None:
    machine.choose(tape="off")


def hot_path_built(machine: Machine) -> None:
    machine.patch.setattr(native.Extension, "find", lambda extension: Path("tape.so"))


def hot_path_refused(machine: Machine) -> None:
    machine.patch.setattr(native.Extension, "was_refused", lambda extension: True)


def hot_path_under_way(machine: Machine) -> None:
    machine.patch.setattr(native.Extension, "is_being_built", lambda extension: True)


def little_memory(machine: Machine) -> None:
    machine.patch.setattr(processor_module, "available_bytes", lambda: 1 << 30)


def products_that_end_the_process(machine: Machine) -> None:
    with_modules(machine)
    without = f"os.environ.get({products_module.VARIABLE!r}) == {products_module.WITHOUT_AMX!r}"
    program = f"import os; print(*[64.0**3] * 3) if {without} else os.kill(os.getpid(), 4)"
    machine.patch.delenv(products_module.VARIABLE, raising=False)
    machine.patch.setattr(products_module, "_PRODUCTS", program)


def wrong_products(machine: Machine) -> None:
    with_modules(machine)
    machine.patch.setattr(products_module, "_PRODUCTS", "print(1, 2, 3)")


def no_driver(machine: Machine) -> None:
    machine.patch.setattr(gpu_module, "_DRIVER", machine.place / "nowhere")
    machine.patch.setattr(torch.cuda, "is_available", lambda: False)


def driver(machine: Machine) -> None:
    machine.patch.setattr(torch.cuda, "is_available", lambda: False)
    (machine.place / "driver").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun\n")
    machine.patch.setattr(gpu_module, "_DRIVER", machine.place / "driver")
    machine.patch.setattr(torch.version, "cuda", None)


def driver_too_old(machine: Machine) -> None:
    driver(machine)
    machine.patch.setattr(torch.version, "cuda", "13.0")


def device(machine: Machine) -> None:
    driver(machine)
    machine.patch.setattr(torch.cuda, "is_available", lambda: True)
    machine.patch.setattr(torch.cuda, "device_count", lambda: 1)
    properties = SimpleNamespace(name="H200", major=9, minor=0)
    machine.patch.setattr(torch.cuda, "get_device_properties", lambda index: properties)


def no_nvrtc(machine: Machine) -> None:
    def refuse(cuda_home: Path | None) -> None:
        raise CudaCompilerMissing("there is no NVRTC")

    machine.patch.setattr(nvrtc_module, "find_nvrtc", refuse)


def no_toolkit(machine: Machine) -> None:
    machine.on_path()


def wrong_cuda_home(machine: Machine) -> None:
    machine.choose(cuda_home=machine.place / "nowhere")


def toolkit(machine: Machine) -> None:
    machine.on_path()
    fake_toolkit(machine.place / "usual")
    machine.patch.setattr(torch.version, "cuda", "13.0")
    machine.patch.setenv("PATH", f"{machine.place / 'bin'}:/bin")
    machine.patch.setattr(shutil, "which", lambda name: None)


def toolkit_of_another_version(machine: Machine) -> None:
    toolkit(machine)
    machine.patch.setattr(torch.version, "cuda", "12.8")


def toolkit_without_torch(machine: Machine) -> None:
    toolkit(machine)
    machine.patch.setattr(torch.version, "cuda", None)


def toolkit_behind_a_script(machine: Machine) -> None:
    toolkit(machine)
    script = wrapper(machine.place / "local" / "bin" / "nvcc", machine.place / "usual" / "bin" / "nvcc")
    machine.patch.setattr(shutil, "which", lambda name: str(script))


def no_ninja(machine: Machine) -> None:
    machine.on_path()


def ninja(machine: Machine) -> None:
    machine.on_path("ninja")


def stale_lock(machine: Machine) -> None:
    lock = machine.place / "torch_extensions" / "py311_cpu" / "mine" / "lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("")


def lock_in_use(machine: Machine) -> None:
    ninja(machine)
    stale_lock(machine)
    machine.kept.append((machine.place / "torch_extensions" / "py311_cpu" / "mine" / "lock").open())


Case = tuple[Callable[[Settings], Any], Callable[[Machine], None], str, str, str | None]

CASES: tuple[Case, ...] = (
    (torch_build, well, "works", "{torch}, ", None),
    (torch_build, old_torch, "broken", "opwright needs torch>=2.11", "pip install 'torch>=2.11'"),
    (torch_build, torch_without_headers, "broken", "C++ headers are missing", "pip install --force-reinstall torch"),
    (processor, well, "works", "torch threads", None),
    (processor, little_memory, "limited", "1.0 GiB of memory free", None),
    (matrix_products, with_modules, "works", "float32, bfloat16 and float16", None),
    (matrix_products, products_that_end_the_process, "broken", "AMX", "export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16"),
    (matrix_products, wrong_products, "broken", "are wrong, in PyTorch itself", None),
    (cache, well, "works", "{cache}: 0 entries", None),
    (cache, open_cache, "broken", "can be written by other users", "chmod go-w {cache}"),
    (cache, file_for_a_cache, "broken", "cannot be used", "export OPWRIGHT_CACHE=/path/to/a/folder/of/yours"),
    (cache, read_only_cache, "broken", "cannot be written by this user", "chmod u+wx {cache}"),
    (cache, entry_open_to_all, "broken", "such as {cache}/libraries/ab", "chmod -R go-w {cache}"),
    (cache, entry_of_another, "broken", "1 files below {cache} belong to another", "sudo chown -R {user} {cache}"),
    (cache, full_disk, "limited", "1 MB free", "opwright cache clear"),
    (leftovers, well, "works", "none running", None),
    (leftovers, killed_build, "works", "1 left by killed processes, which the next build removes", None),
    (leftovers, failed_build, "works", "1 that failed are kept", "rm -r {cache}/failed"),
    (leftovers, running_build, "works", "1 running", None),
    (cpp_compiler, well, "works", "/", None),
    (cpp_compiler, no_compiler, "broken", "every call falls back to your function", "sudo apt-get install g++"),
    (cpp_compiler, no_compiler_and_no_manager, "broken", "g++ was not found; clang++ was not found", None),
    (cpp_compiler, a_wrong_choice, "broken", "/no/such/compiler was not found", "unset CXX"),
    (cpp_compiler, open_cache, "broken", "the search failed", None),
    (trial_kernel, well, "works", "loaded and run", None),
    (trial_kernel, no_compiler, "broken", "cannot be built: there is no working C++ compiler", None),
    (trial_kernel, refused_kernel, "broken", "cannot be built: compiling", "cd {cache}/failed"),
    (trial_kernel, lying_kernel, "broken", "returns 41 instead of 42", None),
    (python_headers, well, "works", "include", None),
    (python_headers, no_python_headers, "limited", "no /no/include/Python.h", "sudo dnf install python3-devel"),
    (hot_path, well, "works", "not built yet", None),
    (hot_path, no_hot_path, "limited", "OPWRIGHT_TAPE=off", "unset OPWRIGHT_TAPE"),
    (hot_path, hot_path_built, "works", "calls run in C++", None),
    (hot_path, hot_path_refused, "limited", "the compiler failed on it", "rm -r {cache}/failed"),
    (hot_path, hot_path_under_way, "works", "is being built by another process", None),
    (hot_path, no_compiler, "limited", "cannot be built", None),
    (gpu, no_driver, "limited", "none: kernels run on the CPU", None),
    (gpu, driver, "limited", "driver 580.65.06, but this PyTorch is built without CUDA", None),
    (gpu, driver_too_old, "limited", "but PyTorch for CUDA 13.0 cannot use it", "nvidia-smi"),
    (gpu, device, "works", "H200 (9.0); driver 580.65.06", None),
    (nvrtc, no_nvrtc, "limited", "there is no NVRTC; no CUDA kernels", "pip install nvidia-cuda-nvrtc"),
    (cuda_toolkit, no_toolkit, "limited", "builds no .cu sources", "pip install nvidia-cuda-nvcc"),
    (cuda_toolkit, wrong_cuda_home, "limited", "nowhere/bin/nvcc", "unset CUDA_HOME CUDA_PATH"),
    (cuda_toolkit, toolkit, "works", "13.0 at {place}/usual", None),
    (
        cuda_toolkit,
        toolkit_of_another_version,
        "limited",
        "does not fit PyTorch",
        "export CUDA_HOME=/path/to/cuda-12.8",
    ),
    (cuda_toolkit, toolkit_without_torch, "limited", "built without CUDA", None),
    (cuda_toolkit, toolkit_behind_a_script, "works", "cpp_extension would take {place}/local for the toolkit", None),
    (torch_extensions, ninja, "works", "ninja is installed", None),
    (torch_extensions, no_ninja, "limited", "needs ninja", "pip install ninja"),
    (
        torch_extensions,
        stale_lock,
        "limited",
        "its load waits forever for lock files of processes that have ended: 1",
        "rm {place}/torch_extensions/py311_cpu/mine/lock",
    ),
    (torch_extensions, lock_in_use, "works", "there are no stale locks", None),
)


@pytest.mark.parametrize(
    ("look", "arrange", "state", "words", "remedy"),
    CASES,
    ids=[f"{case[0].__name__}-{case[1].__name__}" for case in CASES],
)
def test_a_finding_says_what_is_and_how_to_mend_it(
    look: Callable[[Settings], Any],
    arrange: Callable[[Machine], None],
    state: str,
    words: str,
    remedy: str | None,
    machine: Machine,
) -> None:
    arrange(machine)
    found = look(machine.settings)
    names = {
        "place": machine.place,
        "cache": machine.settings.cache_directory,
        "user": os.geteuid(),
        "torch": torch.__version__,
    }
    for kept in machine.kept:
        (kept.close if hasattr(kept, "close") else lambda held=kept: held.__exit__(None, None, None))()

    assert found.state == state
    assert words.format(**names) in found.detail
    assert (found.remedy or "").startswith((remedy or "").format(**names))
    assert (found.remedy is None) == (remedy is None)


def test_nvrtc_compiles_a_kernel_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = nvrtc(Settings(tmp_path))

    assert found.state == "works"
    assert "compiles for" in found.detail


def test_the_remedy_of_an_open_cache_mends_it(machine: Machine) -> None:
    entry_open_to_all(machine)
    remedy = cache(machine.settings).remedy
    assert remedy is not None
    subprocess.run(remedy, shell=True, check=True)

    assert cache(machine.settings).state == "works"

"""Wheels with kernels for GPUs: installed by pip, and run where opwright is not."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import opwright
from opwright.settings import Settings
from opwright.toolchain.modules import module_of_file
from tests.deployment.wheels.conftest import OPERATORS, installed
from tests.on_gpu import optimizer_program, wheel_program
from tests.on_gpu.device import DEVICE
from tests.quick_compiler import chosen_compiler

HERE = Path(__file__).parent
DEFINITIONS = HERE.parent / "optim/shipping/shipped/definitions.py"
RUNG = "cuda" if DEVICE != "cpu" or Settings.from_environment().cuda_on_host else "cpp"
ON_A_GPU = pytest.mark.skipif(DEVICE == "cpu", reason="a rehearsal has kernels of one kind")
pytestmark = pytest.mark.seconds(180)  # wheels are built


def settings() -> Settings:
    """As users build, with the compiler that they have."""
    return replace(Settings.from_environment(), compiler=chosen_compiler(), notify=False)


def architectures() -> str:
    """Of the GPU here."""
    if not torch.cuda.is_available():
        return "9.0"
    major, minor = torch.cuda.get_device_capability()
    return f"{major}.{minor}"


def run(program: Path, site: Path, *arguments: str) -> Any:
    """Run a program with the installed wheel and nothing of ours; returns what it saved."""
    bare = {"PATH": "", "PYTHONPATH": str(site), "HOME": str(site), "PYTHONSAFEPATH": "1"}
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES") if name in os.environ}
    command = [sys.executable, str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**kept, **bare}, cwd=site, check=False)
    assert done.returncode == 0, done.stderr
    return torch.load(site / "results")


@pytest.fixture(scope="module")
def operators() -> Any:
    return module_of_file("shipped_on_gpu", OPERATORS)


@pytest.fixture(scope="module")
def definitions() -> Any:
    return module_of_file("optimizers_on_gpu", DEFINITIONS)


@pytest.fixture(scope="module")
def site(operators: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a wheel of several operators is installed."""
    given = [getattr(operators, name) for name in wheel_program.SIZES]
    folder = tmp_path_factory.mktemp("wheel")
    wheel = opwright.build_wheel(
        given, folder, name="on-gpu", dtypes=[torch.float32], cuda=architectures(), settings=settings()
    )
    assert not wheel.without_cuda
    return installed(wheel.path, tmp_path_factory.mktemp("site"))


def assert_right(made: Any, operators: Any, device: str) -> None:
    for case in wheel_program.cases():
        reference = getattr(operators, case[0]).reference
        arguments = wheel_program.given(case[0], device, strided=case[1])
        right = wheel_program.results_of(reference, arguments, *wheel_program.NUMBERS.get(case[0], ()))
        torch.testing.assert_close(made[case], right, rtol=1e-5, atol=1e-5)


def test_operators_of_a_wheel_run_on_the_gpu(site: Path, operators: Any) -> None:
    made = run(HERE / "wheel_program.py", site, "on_gpu", str(site / "results"), DEVICE, RUNG)
    assert_right(made, operators, DEVICE)


@ON_A_GPU
def test_the_same_wheel_runs_on_the_processor(operators: Any, site: Path) -> None:
    made = run(HERE / "wheel_program.py", site, "on_gpu", str(site / "results"), "cpu", "cpp")
    assert_right(made, operators, "cpu")


@ON_A_GPU
def test_a_wheel_with_ptx_of_an_older_gpu_runs(operators: Any, tmp_path: Path) -> None:
    """There is no machine code for the GPU here, so that the driver compiles the PTX."""
    wheel = opwright.build_wheel(
        [operators.cell], tmp_path, name="of-ptx", dtypes=[torch.float32], cuda="8.0", settings=settings()
    )
    assert wheel.gpus == ("sm_80", "compute_80")
    place = installed(wheel.path, tmp_path / "site")
    text = """
import sys, torch, warnings
warnings.simplefilter("error")
import of_ptx
gates, old_cell = torch.randn(8, 15, device="cuda"), torch.randn(8, 5, device="cuda")
made, right = of_ptx.cell(gates, old_cell), of_ptx.reference.cell(gates, old_cell)
assert of_ptx.cell.last_rung == "cuda", of_ptx.cell.last_rung
torch.testing.assert_close(made, right)
torch.save(None, sys.argv[1])
"""
    (tmp_path / "program.py").write_text(text)
    run(tmp_path / "program.py", place, str(place / "results"))


@pytest.mark.seconds(300)  # kernels for each way to scale gradients, and for each level of processors
def test_an_optimizer_of_a_wheel_runs_on_the_gpu(
    definitions: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opwright.deployment.wheels import wheel as building
    from opwright.toolchain.cpu_levels import cpu_levels

    monkeypatch.setattr(building, "cpu_levels", lambda: cpu_levels()[-1:])
    params = [torch.zeros(shape, requires_grad=True) for shape in optimizer_program.SHAPES]
    wheel = opwright.build_wheel(
        [definitions.Adam(params)], tmp_path, name="optimizers-on-gpu", dtypes=[torch.float32], cuda=architectures(),
        settings=settings(),
    )  # fmt: skip
    place = installed(wheel.path, tmp_path / "site")
    for device in dict.fromkeys((DEVICE, "cpu")):
        made = run(HERE / "optimizer_program.py", place, "optimizers_on_gpu", "Adam", str(place / "results"), device)
        right = optimizer_program.trained(definitions.Adam, "cpu")
        torch.testing.assert_close(made, right, rtol=1e-5, atol=1e-6)

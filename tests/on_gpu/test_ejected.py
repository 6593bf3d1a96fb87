"""Ejected projects: their CUDA is built by nvcc, runs on a GPU, and passes the project's own tests there."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
import torch

from opwright.projects import eject
from opwright.settings import Settings
from opwright.toolchain.gpu.toolkit import find_cuda_toolkit
from opwright.toolchain.modules import module_of_file
from tests.on_gpu import optimizer_program
from tests.on_gpu.device import DEVICE
from tests.projects import operators
from tests.projects.standalone import Standalone
from tests.quick_compiler import chosen_compiler

HERE = Path(__file__).parent
DEFINITIONS = HERE.parent / "optim/shipping/shipped/definitions.py"
FLOAT32 = (torch.float32,)
OF_TWO_DTYPES = (torch.float32, torch.bfloat16)
pytestmark = [
    pytest.mark.seconds(300),  # nvcc takes some seconds for each file
    pytest.mark.skipif(shutil.which("nvcc") is None or torch.version.cuda is None, reason="there is no nvcc"),
]

# Values and gradients on a GPU against the function as it was written; none may be served by it.
PROGRAM = """
import sys, torch
name = sys.argv[1]
from importlib import import_module
package, wrapper = import_module(name), import_module(f"{name}.function")
sys.path.insert(0, "tests")
from samples import DTYPES, call, samples
from test_PROJECT import assert_as_reference, convert, results_of
side = torch.cuda.Stream()
torch.cuda.synchronize()
served = 0
for dtype in DTYPES:
    for sample in samples(dtype):
        given = [each.cuda() if isinstance(each, torch.Tensor) else each for each in sample]
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            assert_as_reference(convert(given, torch.clone))
        reference, wrapper.reference = wrapper.reference, None
        results_of(getattr(package, name), convert(given, torch.clone))
        wrapper.reference = reference
        served += 1
torch.cuda.synchronize()
print("served", served)
"""


def standalone() -> Standalone:
    """A Python of its own that finds nothing of ours; it builds as users do."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OPWRIGHT", "CXX"))}
    kept["CUDA_HOME"] = str(find_cuda_toolkit(Settings.from_environment()).root)  # torch is misled if nvcc is a script
    if compiler := chosen_compiler():
        kept["CXX"] = compiler
    if not torch.cuda.is_available():
        kept["TORCH_CUDA_ARCH_LIST"] = "9.0"
    return Standalone(kept, Path(sys.executable))


def built(project: Path) -> Path:
    """Build a project in its folder, and see that there is a library for GPUs."""
    done = standalone().run(project, "setup.py", "build_ext", "--inplace")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(project.rglob("_cuda*.so")), done.stdout
    return project


def assert_own_tests_pass(project: Path) -> None:
    done = standalone().test(project, "-rs")
    assert done.returncode == 0, done.stdout
    if torch.cuda.is_available():
        assert "no GPU" not in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("operator", "dtypes"),
    [
        (operators.leaky_gate, OF_TWO_DTYPES),
        (operators.affine_norm, FLOAT32),
        (operators.row_softmax, FLOAT32),
        (operators.mean_loss, FLOAT32),
        (operators.rotate, FLOAT32),
        (operators.linear_gelu, FLOAT32),
    ],
    ids=lambda given: given.__name__ if hasattr(given, "__name__") else "",
)
def test_an_operator_is_built_by_nvcc_and_runs(
    operator: object, dtypes: tuple[torch.dtype, ...], tmp_path: Path
) -> None:
    name = operator.__name__  # type: ignore[attr-defined]
    ejected = eject(operator, tmp_path / name, dtypes=dtypes)  # type: ignore[arg-type]
    assert {kind.without_cuda for kind in ejected.kinds} <= {"", None}
    project = built(ejected.directory)
    assert_own_tests_pass(project)
    if torch.cuda.is_available() and DEVICE != "cpu":
        done = standalone().run(project, "-c", PROGRAM.replace("PROJECT", name), name)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("served"), done.stdout


def test_a_project_is_installed_by_pip(tmp_path: Path) -> None:
    """As its README says, for use from elsewhere."""
    ejected = eject(operators.plus_twice, tmp_path / "plus_twice", dtypes=FLOAT32)
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "--quiet"]
    place = tmp_path / "site"
    install = ["-m", "pip", "install", *options, "--target", str(place), str(ejected.directory)]
    done = standalone().run(tmp_path, *install)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(place.rglob("_cuda*.so"))
    text = f"""
import sys
sys.path.insert(0, {str(place)!r})
import torch, plus_twice
from plus_twice import kernels
assert kernels.HAS_CUDA
device = "cuda" if torch.cuda.is_available() else "cpu"
x, y = (torch.randn(16, 32, device=device, requires_grad=True) for _ in range(2))
made = plus_twice.plus_twice(x, y)
torch.testing.assert_close(made, x + 2 * y)
made.sum().backward()
assert (x.grad == 1).all() and (y.grad == 2).all()
print("right")
"""
    done = standalone().run(tmp_path, "-c", text)
    assert done.stdout == "right\n", done.stdout + done.stderr


def test_an_optimizer_is_built_by_nvcc_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opwright.optim.shipping import planning

    monkeypatch.setattr(planning, "USUAL_SHAPES", ((5, 7), (5,)))
    definitions = module_of_file("ejected_on_gpu", DEFINITIONS)
    project = built(definitions.Adam.eject(tmp_path / "adam", dtypes=FLOAT32).directory)
    assert_own_tests_pass(project)
    device = "cuda" if torch.cuda.is_available() and DEVICE != "cpu" else "cpu"
    program, results = HERE / "optimizer_program.py", tmp_path / "results"
    text = f"import sys, runpy; sys.path.insert(0, '.'); runpy.run_path({str(program)!r}, run_name='__main__')"
    done = standalone().run(project, "-c", text, "adam", "Adam", str(results), device)
    assert done.returncode == 0, done.stdout + done.stderr
    right = optimizer_program.trained(definitions.Adam, "cpu")
    torch.testing.assert_close(torch.load(results), right, rtol=1e-5, atol=1e-6)

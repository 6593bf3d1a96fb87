"""Wheels are right where neither opwright nor a compiler is, say so when they cannot be, and are refused by name."""

import copy
import json
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import opwright
from opwright.deployment.wheels.platform_tag import can_tell
from opwright.errors import ArchitectureUnknown, CompilerMissing, CudaCompilerMissing, SamplesMissing, WheelUnsupported
from opwright.settings import Settings
from opwright.toolchain.gpu.nvrtc import find_nvrtc
from tests.deployment.wheels.conftest import OPERATORS, PACKAGE, built, installed, judged, unpacked
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING
from tests.suite.nights import mostly_at_night
from tests.suite.warm_python import run

CELLS = ("cell", "cell, strided", "cell, float64", "cell, empty")
PROGRAM = Path(__file__).parent / "shipped/program.cpp"
pytestmark = pytest.mark.seconds(60)  # wheels are built and installed by processes of their own

FAKE_TORCH = Path(__file__).parents[2] / "include/cuda/fake_torch.cpp"


@pytest.mark.parametrize(
    ("capability", "level"),
    [("default", "x86-64-v2"), pytest.param("avx2", "x86-64-v3", marks=pytest.mark.nightly)],
)
def test_a_wheel_needs_neither_opwright_nor_a_compiler(site, capability, level):
    report = judged(site, "quick", *CELLS, ATEN_CPU_CAPABILITY=capability)
    assert report["failures"] == []
    assert report["judged"] == len(CELLS)
    if "x86-64-v2" in report["levels"]:
        assert report["cpu_level"] == level


def test_the_judge_notices_another_function(site, tmp_path):
    other = altered(site, tmp_path, "reference.py", "torch.tanh(new)", "torch.tanh(1.001 * new)")
    failures = judged(other, "quick", "cell")["failures"]
    for check in ("forward", "backward", "twice_backward"):
        assert any(failure.startswith(f"cell: {check} by op") for failure in failures), failures


def test_a_wheel_for_a_newer_torch_says_so_and_runs_its_references(site, tmp_path):
    other = altered(site, tmp_path, "stamp.json", '"torch_target": "2.11"', '"torch_target": "9.0"')
    text = f"""
import warnings, torch
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import {PACKAGE} as p
gates = torch.randn(4, 9, requires_grad=True)
hidden, _ = torch.ops.{PACKAGE}.cell(gates, torch.randn(4, 3))
hidden.sum().backward()
print([str(one.message) for one in said if {PACKAGE!r} in str(one.message)], p.cell.last_rung, gates.grad is not None)
"""
    done = run("-c", text, cwd=other, having="torch")
    sentence = (
        f"{PACKAGE} runs its references: its kernels need torch 9.0 or newer, and this is torch {torch.__version__}"
    )
    assert done.stdout.strip() == f"[{sentence!r}] composed True"


def test_compilers_are_told_the_sizes_of_results_also_of_symbolic_ones(tmp_path):
    wheel = built([f"{OPERATORS}:labelled"], tmp_path / "wheel")
    text = f"""
import torch, {PACKAGE} as p
x, classes = torch.randn(8, 5), torch.tensor([4, 0, 4])
mean = lambda f: lambda x, classes: f(x, classes).sum() / f(x, classes).numel()
found = torch.compile(mean(p.labelled), backend="eager", dynamic=True)(x, classes)
print(torch.allclose(found, mean(p.reference.labelled)(x, classes)))
"""
    done = run("-c", text, cwd=unpacked(wheel["path"], tmp_path / "site"), having="torch")
    assert done.stdout.strip() == "True", done.stderr


def test_a_wheel_works_beside_opwright(site, monkeypatch):
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.syspath_prepend(str(OPERATORS.parent))
    package, operators = __import__(PACKAGE), __import__("operators")
    gates, old_cell = torch.randn(4, 9), torch.randn(4, 3)

    torch.testing.assert_close(package.cell(gates, old_cell), operators.cell(gates, old_cell))
    assert (package.cell.last_rung, operators.cell.last_rung) == ("cpp", "cpp")
    assert copy.deepcopy(package.cell) is pickle.loads(pickle.dumps(package.cell)) is package.cell
    assert str(package.library) in torch.ops.loaded_libraries


def mixed(n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(n / 3) * torch.sin(x) + torch.tensor(0.1)


UNDER = """
import warnings, sys, json, torch
import mixed_operators as p
found = []
for default in (torch.float32, torch.float64):
    torch.set_default_dtype(default)
    n, x = torch.arange(4), torch.linspace(-1, 1, 4, dtype=torch.float64)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for function in (p.mixed, torch.ops.mixed_operators.mixed):
            torch.testing.assert_close(function(n, x), p.reference.mixed(n, x), rtol=1e-6, atol=1e-7)
            again = torch.compile(lambda n, x: function(n, x), backend="aot_eager")(n, x)
            torch.testing.assert_close(again, p.reference.mixed(n, x), rtol=1e-6, atol=1e-7)
    found.append([p.mixed.last_rung, len({str(one.message) for one in said if "default dtype" in str(one.message)})])
print(json.dumps(found))
"""


@pytest.mark.parametrize("default", mostly_at_night([torch.float64, torch.float32], by_day=1), ids=str)
def test_kernels_are_for_the_default_dtype_that_they_were_built_under(default, tmp_path):
    sample = opwright.Sample((torch.arange(4), torch.ones(4, dtype=torch.float64)))
    compiler = keeping_compiler(OPTIMIZING_NOTHING)
    settings = replace(Settings.from_environment(), notify=False, compiler=compiler)
    torch.set_default_dtype(default)
    try:
        subject = opwright.operator(mixed, samples=lambda device, dtype: [sample], name="mixed_operators::mixed")
        wheel = opwright.build_wheel([subject], tmp_path, name="mixed-operators", settings=settings)
    finally:
        torch.set_default_dtype(torch.float32)
    site = unpacked(wheel.path, tmp_path / "site")
    done = run("-c", UNDER, cwd=site, having="torch")
    assert done.returncode == 0, done.stderr
    served, left = ["cpp", 0], ["composed", 1]
    assert json.loads(done.stdout) == ([served, left] if default is torch.float32 else [left, served])


@pytest.mark.nightly
def test_kernels_for_gpus_are_right_where_they_run_on_the_processor(tmp_path):
    wheel = built([f"{OPERATORS}:cell"], tmp_path, "--cuda", "9.0", OPWRIGHT_CUDA_ON_HOST="1")
    site = unpacked(wheel["path"], tmp_path / "site")
    assert judged(site, "quick", "cuda", "cell, strided")["failures"] == []
    assert len(list((site / PACKAGE / "lib/cuda").iterdir())) == 2  # forward, with gradients and without, and backward


def test_gpus_that_do_not_exist_are_refused(tmp_path):
    with pytest.raises(ArchitectureUnknown, match="'Kepler' in the list of CUDA architectures"):
        opwright.build_wheel([operator()], tmp_path, cuda="Kepler")


def test_what_the_command_says_is_what_the_wheel_holds(wheel, site):
    stamp = json.loads((site / PACKAGE / "stamp.json").read_text())
    assert wheel["operators"] == [f"{PACKAGE}::cell"]
    assert Path(wheel["path"]).stat().st_size == wheel["size_bytes"]
    assert stamp["levels"] == wheel["levels"]
    assert stamp["torch"] == torch.__version__
    assert sorted(stamp["libraries"]) == sorted(path.name for path in (site / PACKAGE / "lib").iterdir())
    assert ("-py3-none-manylinux_" if can_tell() else "-py3-none-linux_") in wheel["path"]
    for library in (site / PACKAGE / "lib").iterdir():
        names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
        visible = {line.split()[-1] for line in names.stdout.splitlines()}
        assert visible <= {"opwright_cpu_level", "opwright_load_failure", "opwright_cuda_failure"}


def plain(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x)


def changing(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1)


def listed(xs: list[torch.Tensor]) -> torch.Tensor:
    return xs[0] + xs[1]


def same(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x, torch.sin(x)


VECTORS = opwright.shapes("A", A=3)


def unsaid(x, scale=2.0):
    return torch.sin(x) * scale


def single(x: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.sin(x),)


def operator(function=plain, samples=VECTORS, **options):
    return opwright.operator(samples=samples, **options)(function)


def pairs(device, dtype):
    yield opwright.Sample(([torch.ones(2), torch.ones(2)],))


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (list, {}, "there is no operator to put into a wheel"),
        (lambda: [operator()], {"name": "no name"}, "'no name' is not the name of a package"),
        (
            lambda: [operator()],
            {"version": "one"},
            "'one' is not the version of a wheel\nhint: write one such as 1.2.0",
        ),
        (lambda: [operator(), operator(name="other::plain")], {}, "two operators of the wheel are called plain"),
        (lambda: [operator(name="other::library")], {}, "an operator of a wheel cannot be called library"),
        (lambda: [operator(changing, mutates=("x",))], {}, "opwright::changing changes its arguments"),
        (
            lambda: [operator(autocast="low")],
            {},
            "has an autocast policy, but operators of a wheel run",
        ),
        (lambda: [operator(listed, pairs)], {}, "opwright::listed takes or returns a structure"),
        (
            lambda: [operator(unsaid)],
            {},
            "opwright::unsaid does not say what x and scale may be, which a schema must, so no wheel can hold it\n"
            "hint: annotate each: x: torch.Tensor, scale: float",
        ),
        (lambda: [operator(single)], {}, "opwright::single returns a tuple of one tensor"),
        (lambda: [operator(same)], {}, "opwright::same returns something else than tensors that it computes"),
    ],
)
def test_what_a_wheel_cannot_hold_is_refused(tmp_path, make, options, words):
    with pytest.raises(WheelUnsupported) as refused:
        opwright.build_wheel(make(), tmp_path / "dist", **options)
    assert words in str(refused.value)
    assert not (tmp_path / "dist").exists()


def test_an_operator_without_samples_is_refused(tmp_path):
    with pytest.raises(SamplesMissing, match="so nothing is known of what to build"):
        opwright.build_wheel([operator(samples=None)], tmp_path)


def test_without_a_compiler_there_is_no_wheel(tmp_path):
    settings = replace(Settings.from_environment(), compiler=str(tmp_path / "none"))
    with pytest.raises(CompilerMissing):
        opwright.build_wheel([operator()], tmp_path / "dist", settings=settings)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    try:
        find_nvrtc()
    except CudaCompilerMissing:
        return built([str(OPERATORS)], tmp_path_factory.mktemp("everything"))
    return built([str(OPERATORS)], tmp_path_factory.mktemp("everything"), "--cuda", "8.0 9.0")


@pytest.mark.nightly
def test_kernels_for_gpus_are_loaded_where_torch_has_cuda(everything, tmp_path):
    if not everything["gpus"]:
        pytest.skip("there is no NVRTC")
    assert everything["gpus"] == ["sm_80", "sm_90", "compute_90"]
    assert list(everything["without_cuda"]) == [f"{PACKAGE}::dropped"]
    site = installed(everything["path"], tmp_path)
    libraries = [path.read_bytes() for path in (site / PACKAGE / "lib/cuda").iterdir()]
    assert all(library.count(b"\x7fELF\x02\x01\x01") == 3 for library in libraries)  # it, and code for two GPUs
    assert all(b".target sm_90\n" in library for library in libraries)
    text = f"""
import ctypes, torch, {PACKAGE} as p
print(sum(variant.rung == "cuda" for variant in p.cell.variants))
"""
    fake = tmp_path / "libtorch_cuda.so"
    options = ["-shared", "-fPIC", "-Wl,-soname,libtorch_cuda.so"]  # by which a library that is loaded is found
    subprocess.run(["g++", *options, str(FAKE_TORCH), "-o", str(fake)], check=True)
    pretending = f"import ctypes; ctypes.CDLL({str(fake)!r})\n"
    for opening, kernels in (("", 0), (pretending, 2)):
        command = [sys.executable, "-c", opening + text]
        done = subprocess.run(command, capture_output=True, text=True, cwd=site, check=True)
        assert (done.stdout, done.stderr) == (f"{kernels}\n", "")


_HAS_AVX512 = torch.backends.cpu.get_cpu_capability() == "AVX512"  # torch takes the environment at its word


@pytest.mark.nightly
@pytest.mark.parametrize(
    "capability",
    [
        "default",
        "avx2",
        pytest.param("avx512", marks=pytest.mark.skipif(not _HAS_AVX512, reason="the processor has no AVX-512")),
    ],
)
def test_every_operator_is_right_in_every_way(everything, tmp_path, capability):
    site = installed(everything["path"], tmp_path)
    assert judged(site, ATEN_CPU_CAPABILITY=capability)["failures"] == []


@pytest.mark.nightly
def test_other_versions_of_torch_and_python_give_the_same_results(everything, tmp_path, request):
    others = request.config.getoption("--other-python")
    if not others:
        pytest.skip("no --other-python was given")
    for position, python in enumerate(others):
        site = installed(everything["path"], tmp_path / str(position))
        assert judged(site, python=python)["failures"] == []


@pytest.mark.nightly
def test_a_program_of_cpp_runs_the_operators(everything, tmp_path):
    site = installed(everything["path"], tmp_path / "site")
    torch_folder = Path(torch.__file__).parent
    program = tmp_path / "program"
    libraries = [
        f"-L{torch_folder / 'lib'}",
        "-ltorch",
        "-ltorch_cpu",
        "-lc10",
        "-ldl",
        f"-Wl,-rpath,{torch_folder / 'lib'}",
    ]
    compile_it = ["g++", "-std=c++20", "-O0", str(PROGRAM), f"-I{torch_folder / 'include'}", "-o", str(program)]
    subprocess.run([*compile_it, *libraries], check=True)
    library = site / PACKAGE / "lib" / f"{PACKAGE}.so"
    done = subprocess.run([str(program), str(library)], capture_output=True, text=True, check=True)
    reason = "it was built without a kernel for these dtypes, devices, layouts or constants, with sizes"
    assert done.stdout.splitlines() == [
        "cell: 11",
        "scale: 1",
        f"dtype: {PACKAGE}::cell cannot run here: {reason} [4, 9] [4, 3], and its reference is in Python",
        f"empty: {PACKAGE}::cell cannot run here: {reason} [0, 9] [0, 3], and its reference is in Python",
        f"gradient: {PACKAGE}::cell cannot run here: it has derivatives in Python only; from C++ call it under "
        "torch::NoGradGuard",
        "no_grad: 1",
    ]


def altered(site, folder, file, before, after):
    """A copy of an installed wheel with other words in one of its files."""
    shutil.copytree(site / PACKAGE, folder / PACKAGE)
    path = folder / PACKAGE / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    return folder

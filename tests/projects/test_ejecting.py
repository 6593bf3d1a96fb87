"""Ejected projects build and pass their own tests where there is no opwright, and fail them when they are wrong."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
from pathlib import Path

import pytest
import torch

import opwright
from opwright.errors import DirectoryTaken, NotEjectable, ProjectNameUnusable, SamplesMissing
from opwright.projects import eject
from tests.projects import operators
from tests.projects.compiled_cuda import assert_cuda_compiles
from tests.suite.nights import mostly_at_night

REPOSITORY = Path(__file__).parents[2]
FLOAT64 = (torch.float64,)


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """A project of the smallest operator."""
    return eject(operators.leaky_gate, tmp_path_factory.mktemp("ejected") / "gate", dtypes=FLOAT64)


@pytest.mark.seconds(60)
def test_a_project_builds_and_passes_its_tests_without_opwright(gate, standalone, tmp_path):
    standalone.build(gate.directory)
    done = standalone.test(gate.directory, "-rs")
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert all("no GPU, or nothing built for it" in line for line in skipped), skipped

    (source,) = (path for path in (gate.directory / "csrc").glob("*.cpp") if path.name != "library.cpp")
    right = source.read_text()
    assert "sigmoid(gate)" in right
    source.write_text(right.replace("sigmoid(gate)", "(1.0e-6 + sigmoid(gate))"))
    standalone.build(gate.directory)
    done = standalone.test(gate.directory, "-k", "values")
    assert done.returncode == 1, done.stdout
    assert "test_values_and_gradients" in done.stdout


def test_opwright_is_out_of_reach_in_that_environment(standalone, tmp_path):
    done = standalone.run(tmp_path, "-c", "import opwright")
    assert "there is no opwright here" in done.stderr


@pytest.mark.parametrize(
    "operator",
    mostly_at_night([operators.affine_norm, operators.power], by_day=1),
    ids=lambda operator: operator.__name__,
)
def test_a_project_is_the_same_each_time_and_reads_well(operator, tmp_path):
    once, again = (eject(operator, tmp_path / which, dtypes=FLOAT64) for which in ("once", "again"))
    assert once.files == again.files
    for file in once.files:
        content = (once.directory / file).read_bytes()
        assert content == (again.directory / file).read_bytes(), file
        if file.endswith((".py", ".cpp", ".h")) and "csrc/opwright" not in file:
            text = content.decode()
            assert max(map(len, text.splitlines())) <= 120, file
            assert str(REPOSITORY) not in text, file
        if file.endswith(".py"):
            ast.parse(content)


def test_sources_are_written_to_be_read(gate):
    """The C++ says what is computed, and for which sizes, in as many words as needed."""
    text = (gate.directory / "csrc" / "float64.cpp").read_text()
    assert "//   leaky_gate" not in text
    assert "bool forward_float64(const Tensor* given, const Size* sizes, Tensor* made)" in text
    assert "x_size_0 == gate_size_0" in text or "gate_size_0 == x_size_0" in text
    assert "opwright_kernels" not in text
    assert not (gate.directory / "csrc" / "opwright" / "pool.h").exists()


def test_the_cuda_of_a_project_compiles_without_a_gpu(gate):
    assert_cuda_compiles(gate.directory)
    assert "OPWRIGHT_CUDA_ON_HOST" not in (gate.directory / "csrc/opwright/cuda/call.h").read_text()


def test_constants_and_numbers_have_kernels_of_their_own(tmp_path):
    ejected = eject(operators.power, tmp_path / "power", dtypes=FLOAT64)
    text = (tmp_path / "power" / "power" / "function.py").read_text()
    assert [kind.label for kind in ejected.kinds] == ["float64", "float64_2d", "float64_2d_2"]
    assert 'repr(n) == "2"' in text
    assert 'repr(n) == "3"' in text
    assert "type(scale) is float" in text
    assert "type(shift) is int" in text
    assert "-(2**63) <= shift < 2**63" in text
    assert "integer(shift)" in text
    assert {kind.without_cuda for kind in ejected.kinds} == {"a kernel would wait for numbers from the CPU"}


def scaled_by(factor):
    @opwright.operator(samples=opwright.shapes("B", B=4), name="tripled")
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * factor

    return scaled


TABLE = torch.ones(3)


@opwright.operator(samples=opwright.shapes("B 3", B=4))
def with_a_table(x: torch.Tensor) -> torch.Tensor:
    return x * TABLE


@opwright.operator
def without_samples(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@opwright.operator(samples=opwright.shapes("B S", B=4, S=8))
def noisy_ejected(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rand_like(x)


@opwright.operator(samples=opwright.shapes("B S", B=4, S=8), mutates=("x",))
def doubling(x: torch.Tensor) -> torch.Tensor:
    x.mul_(2)
    return x + 1


@opwright.operator(samples=opwright.shapes("B S", B=4, S=8), autocast="low")
def lowered(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@opwright.operator(samples=opwright.shapes("B S", B=4, S=8))
def calls_another(x: torch.Tensor) -> torch.Tensor:
    return operators.plus_twice(x, x) * 2


@opwright.operator(samples=lambda device, dtype: [opwright.Sample(([torch.ones(3, dtype=dtype)] * 2,))])
def of_a_list_ejected(xs: list[torch.Tensor]) -> torch.Tensor:
    return xs[0] + xs[1]


@opwright.operator(samples=opwright.shapes("B S", B=4, S=8), name="math")
def named_like_another(x: torch.Tensor) -> torch.Tensor:
    return x * 2


REFUSALS = [
    (without_samples, SamplesMissing, "has no samples, so it is unknown which kernels to eject"),
    (with_a_table, NotEjectable, "uses TABLE, a value of type Tensor, so a project cannot include it"),
    (noisy_ejected, NotEjectable, "noisy_ejected draws random numbers; its second derivative would draw new ones"),
    (doubling, NotEjectable, "doubling changes its arguments"),
    (
        lowered,
        NotEjectable,
        "lowered has an autocast policy, but an ejected operator runs its reference under autocast",
    ),
    (calls_another, NotEjectable, "calls_another uses operators, the module tests.projects.operators"),
    (of_a_list_ejected, NotEjectable, "of_a_list_ejected takes a structure, xs"),
    (named_like_another, ProjectNameUnusable, "'math' is the name of a module"),
]


@pytest.mark.parametrize(("operator", "error", "words"), REFUSALS, ids=lambda case: getattr(case, "__name__", ""))
def test_what_cannot_stand_alone_is_refused_and_nothing_is_written(operator, error, words, tmp_path):
    with pytest.raises(error, match=words):
        operator.eject(tmp_path / "project")
    assert not (tmp_path / "project").exists()


def test_a_source_that_cannot_be_read_is_refused(tmp_path):
    space = {"torch": torch}
    exec("def unseen_source(x: torch.Tensor) -> torch.Tensor:\n    return x * 2", space)
    operator = opwright.operator(samples=opwright.shapes("B", B=4))(space["unseen_source"])
    with pytest.raises(NotEjectable, match="unseen_source has no source that can be read"):
        operator.eject(tmp_path / "unseen_source")


def test_what_surrounds_a_function_is_carried(tmp_path):
    scaled_by(3.0).eject(tmp_path, dtypes=FLOAT64)
    assert "factor = 3.0" in (tmp_path / "tripled" / "reference.py").read_text()


def test_a_directory_with_something_in_it_is_written_only_by_force(gate, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DirectoryTaken, match="is not empty"):
        operators.leaky_gate.eject(tmp_path, dtypes=FLOAT64)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    operators.leaky_gate.eject(tmp_path, dtypes=FLOAT64, force=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "setup.py").exists()
    with pytest.raises(DirectoryTaken, match="is a file"):
        operators.leaky_gate.eject(tmp_path / "notes.txt", force=True)


def examples() -> list[opwright.Operator]:
    """The operators of the examples that have samples."""
    found = []
    for path in sorted((REPOSITORY / "examples").glob("*.py")):
        if path.stem == "demo":  # which shows one of them
            continue
        spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += [value for value in vars(module).values() if isinstance(value, opwright.Operator) and value.samples]
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("operator", [*operators.ASSORTED, *examples()], ids=lambda operator: operator.__name__)
def test_assorted_projects_build_and_pass_their_tests(operator, environment, tmp_path):
    operator.eject(tmp_path / "project")
    environment.build(tmp_path / "project")
    done = environment.test(tmp_path / "project")
    assert done.returncode == 0, done.stdout
    assert_cuda_compiles(tmp_path / "project")


@pytest.mark.nightly
def test_a_project_installs(gate, environment, tmp_path):
    """As its README says, by pip, into a folder, and is imported from there."""
    pip = subprocess.run(
        [environment.python, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--target", "there", "."],
        cwd=gate.directory, env=environment.environment, capture_output=True, text=True,
    )  # fmt: skip
    assert pip.returncode == 0, pip.stdout + pip.stderr
    done = environment.run(gate.directory / "there", "-c", "import leaky_gate; print(leaky_gate.__file__)")
    assert "there" in done.stdout, done.stderr

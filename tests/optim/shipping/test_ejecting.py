"""Ejected optimizers build and pass their own tests where there is no opwright, and fail them when they are wrong."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import opwright
from opwright.errors import DirectoryTaken, NotEjectable, SamplesMissing
from opwright.optim.shipping import planning
from tests.projects.compiled_cuda import assert_cuda_compiles
from tests.projects.standalone import Standalone, variables

FLOAT32 = (torch.float32,)


@pytest.fixture(scope="module", autouse=True)
def few_shapes() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "USUAL_SHAPES", ((5, 7), (5,)))
        patch.setattr(planning, "_WAYS", planning._WAYS[:2])
        yield


@pytest.mark.nightly
def test_a_project_builds_and_passes_its_tests_without_opwright(definitions: Any, tmp_path: Path) -> None:
    ejected = definitions.Adam.eject(tmp_path / "adam", dtypes=FLOAT32)
    assert list(ejected.kernels) == ["float32", "float32_scaled"]
    standalone = Standalone(variables())
    standalone.build(ejected.directory)
    done = standalone.test(ejected.directory)
    assert done.returncode == 0, done.stdout

    source = ejected.directory / "csrc/float32.cpp"
    right = source.read_text()
    assert "new_param_out_row[j] = " in right
    source.write_text(right.replace("new_param_out_row[j] = ", "new_param_out_row[j] = 1.0e-3f + "))
    standalone.build(ejected.directory)
    done = standalone.test(ejected.directory, "-k", "definition")
    assert done.returncode == 1, done.stdout
    assert "test_steps_are_those_of_the_definition" in done.stdout


def test_a_project_is_the_same_each_time_and_reads_well(definitions: Any, tmp_path: Path) -> None:
    once, again = (definitions.Averaged.eject(tmp_path / which, dtypes=FLOAT32, momentum=0.5) for which in ("a", "b"))
    assert once.files == again.files
    for file in once.files:
        text = (once.directory / file).read_text()
        assert text == (again.directory / file).read_text(), file
        if file.endswith((".py", ".cpp", ".h")) and "csrc/opwright" not in file:
            assert max(map(len, text.splitlines())) <= 120, file
            assert str(Path(__file__).parents[3]) not in text, file
        if file.endswith(".py"):
            ast.parse(text, feature_version=(3, 10))
            assert "import opwright" not in text
            assert "from opwright" not in text
    assert "momentum': 0.5" in (once.directory / "tests/test_averaged.py").read_text()


def test_the_cuda_of_a_project_compiles_without_a_gpu(definitions: Any, tmp_path: Path) -> None:
    """NVRTC takes the kernels, g++ what launches them; each knows the names of the other."""
    ejected = definitions.Averaged.eject(tmp_path / "a", dtypes=FLOAT32, momentum=0.5)
    csrc = ejected.directory / "csrc"
    kernels = sorted(csrc.glob("cuda/*.cu"))
    assert [each.stem for each in kernels] == ["float32", "float32_scaled"]
    assert_cuda_compiles(ejected.directory)
    declared = set(re.findall(r'extern "C" void (\w+)\(', "".join(p.read_text() for p in csrc.glob("cuda/*.cpp"))))
    defined = {name for each in kernels for name in re.findall(r"(\w+)\(const __grid_constant__", each.read_text())}
    assert declared == defined
    assert len(declared) == len(kernels)
    records = ast.literal_eval((ejected.directory / "averaged/built.py").read_text().partition("KERNELS = ")[2])
    on_gpus = [record for kind, of_kind in records.items() if "device='cuda'" in kind for record in of_kind]
    assert {record["launch"] for record in on_gpus} == {f"averaged_cuda_{each.stem}_launch" for each in kernels}
    launchers = "".join(path.read_text() for path in csrc.glob("cuda/*_launch.cpp"))
    assert all(f'"{record[key]}"' in launchers for record in on_gpus for key in ("name", "launch"))


def test_what_cannot_be_ejected_is_refused(definitions: Any, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(DirectoryTaken):
        definitions.Adam.eject(tmp_path)
    with pytest.raises(SamplesMissing, match="WithoutRate has no default for lr"):
        definitions.WithoutRate.eject(tmp_path / "a")
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        definitions.Adam.eject(tmp_path / "a", speed=1)
    with pytest.raises(NotEjectable, match="lr is of type Tensor, which no file can name"):
        definitions.Adam.eject(tmp_path / "a", lr=torch.tensor(0.1))
    with pytest.raises(NotEjectable, match="plain_update is not decorated where it is defined"):
        opwright.optimizer()(definitions.plain_update).eject(tmp_path / "a")
    assert not (tmp_path / "a").exists()

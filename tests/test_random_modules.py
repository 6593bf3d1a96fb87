"""Random programs in wheels and in ejected projects, against the programs, in a process without opwright."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from opwright.api.operator import Operator
from opwright.deployment.wheels.wheel import build_wheel
from opwright.projects import eject
from opwright.toolchain.modules import module_of_text
from tests.projects.standalone import Standalone, variables
from tests.random_module import faults_of, module_of, program_of
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.filterwarnings(
    "ignore:Tensor.mT is deprecated on 0-D tensors",
    "ignore:var.*degrees of freedom is <= 0",
)
_JUDGE = """
import importlib, json, sys, warnings
from tests.random_module import faults_of

warnings.simplefilter("ignore")
sys.path.insert(0, ".")
rungs = set()
faults = list(faults_of(importlib.import_module(sys.argv[-1]), rungs))
print(json.dumps([faults, sorted(rungs)]))
"""


def operators_of(seeds: range) -> list[Operator]:
    module = module_of_text(f"programs_{seeds.start}_{seeds.stop}", module_of(seeds))
    return [each for each in vars(module).values() if isinstance(each, Operator)]


def judged(folder: Path, package: str) -> list[str]:
    """The faults of a package, and the rungs that served its calls."""
    done = Standalone(variables()).run(folder, "-c", _JUDGE, package)
    assert done.returncode == 0, done.stderr
    faults, rungs = json.loads(done.stdout.splitlines()[-1])
    assert not faults, "\n\n".join(faults)
    return rungs


class _DoublesGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return 2 * gradient


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        (lambda results: results, None),
        (lambda results: [result + 1 for result in results], "results[0]"),
        (lambda results: [result.float() for result in results], "results[0]"),
        (lambda results: [_DoublesGradients.apply(result) for result in results], ": gradients["),
        (lambda results: torch.ones(2) @ torch.ones(3), "it raises"),
    ],
    ids=["right", "wrong values", "another dtype", "wrong gradients", "an error"],
)
def test_the_judge_finds(changed: Callable[[list[torch.Tensor]], Any], found: str | None) -> None:
    program, module = program_of(50_000), ModuleType("changed")
    module.program_50000 = lambda *arguments: changed(program.function()(*arguments))
    faults = list(faults_of(module, set()))
    assert any(found in fault for fault in faults) if found else not faults, faults


@pytest.mark.seconds(120)
@pytest.mark.parametrize("block", mostly_at_night(range(8), by_day=0))
def test_a_wheel_of_random_programs(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", variables()["CXX"])
    operators = operators_of(range(50_000 + 20 * block, 50_020 + 20 * block))
    built = build_wheel(operators, tmp_path, name="random-programs", dtypes=[torch.float32, torch.float64])
    shutil.unpack_archive(built.path, tmp_path / "site", "zip")
    assert "cpp" in judged(tmp_path / "site", "random_programs")


@pytest.mark.seconds(300)
@pytest.mark.parametrize("block", mostly_at_night(range(8), by_day=0))
def test_ejected_random_programs(block: int, tmp_path: Path) -> None:
    for operator in operators_of(range(40_000 + 8 * block, 40_008 + 8 * block)):
        project = eject(operator, tmp_path / operator.name.rpartition(":")[2], dtypes=[torch.float32, torch.float64])
        Standalone(variables()).build(project.directory)
        judged(project.directory, project.name)

"""Optimizers in wheels: what they compute without opwright, what they say, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import opwright
from opwright.deployment.wheels import wheel as building
from opwright.deployment.wheels.faithful import refuse_unfaithful_optimizer
from opwright.deployment.wheels.planned import Serving
from opwright.deployment.wheels.wheel import Wheel
from opwright.errors import SamplesMissing, WheelUnsupported
from opwright.optim import stepping
from opwright.optim.shipping import planning
from opwright.settings import Settings
from opwright.toolchain.cpu_levels import cpu_levels
from tests.deployment.wheels.conftest import unpacked
from tests.keeping_compiler import keeping_compiler
from tests.optim.shipping.shipped import judge
from tests.optim.trained import assert_same, parameters
from tests.quick_compiler import OPTIMIZING_NOTHING
from tests.suite.nights import mostly_at_night
from tests.suite.warm_python import run

HERE = Path(__file__).parent / "shipped"
PACKAGE = "shipped_optimizers"


SHAPES = ((7, 5), (5,), (2, 3, 4))
MATRIX = ((7, 5),)
CPP = (Serving("cpp", "cpu"),)


def built(given: list[Any], folder: Path, *, on_host: bool = False, **options: Any) -> Wheel:
    compiler = keeping_compiler(f"{OPTIMIZING_NOTHING} -fexceptions" if on_host else OPTIMIZING_NOTHING)
    settings = replace(Settings.from_environment(), compiler=compiler, notify=False, cuda_on_host=on_host)
    return opwright.build_wheel(given, folder, dtypes=[torch.float32], settings=settings, **options)


def given(definitions: Any) -> list[Any]:
    return [
        definitions.doubled,
        definitions.Adam(parameters(SHAPES)),
        definitions.Averaged(parameters(SHAPES), momentum=0.5, nesterov=True, warm=1.0),
        definitions.Trusting(parameters(MATRIX)),
    ]


@pytest.fixture(scope="module")
def wheel(definitions: Any, tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    """For one level of processors, without kernels for unscaling: compilers take a second for each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "_WAYS", planning._WAYS[:2])
        patch.setattr(building, "cpu_levels", lambda: cpu_levels()[-1:])
        return built(given(definitions), tmp_path_factory.mktemp("wheel"), name="shipped-optimizers")


@pytest.fixture(scope="module")
def site(wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(wheel.path, tmp_path_factory.mktemp("site"))


def judged_in(site: Path, *cases: str) -> Any:
    """What the wheel computes and says in a process without opwright."""
    bare = {"PATH": "", "PYTHONPATH": str(site), "HOME": str(site)}
    begin = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    command = ("-c", begin, str(HERE / "judge.py"), PACKAGE, str(site / "results"), *cases)
    done = run(*command, env=bare, cwd=site, having="torch")
    assert done.returncode == 0, done.stderr
    return torch.load(site / "results")


@pytest.fixture(scope="module")
def judged(site: Path) -> Any:
    return judged_in(site, *judge.CASES)


@pytest.mark.seconds(60)  # wheels are built
@pytest.mark.parametrize("case", sorted(judge.CASES))
@pytest.mark.falls_back
def test_a_wheel_computes_bit_for_bit_what_the_optimizer_does(
    case: str, judged: Any, definitions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, level = judged
    made, said = results[case]
    assert level
    name, _, dtype, _, by_kernels = judge.CASES[case]
    if not by_kernels:
        monkeypatch.setattr(stepping, "is_quiet", lambda: False)  # the definition serves here too
    assert_same(made, judge.trained(definitions, case))
    assert bool(said) != by_kernels
    for each in said:
        assert each.startswith(f"{PACKAGE} runs the definition of {name}, operation by operation: none of its kernels")
        assert str(dtype).removeprefix("torch.") in each


@pytest.mark.nightly
@pytest.mark.falls_back
def test_whole_wheels(definitions: Any, tmp_path: Path) -> None:
    """All levels, unscaling, parameters without dimensions, and ready optimizers."""
    more = [
        definitions.Adam,
        definitions.SGD(parameters(), lr=0.5),
        definitions.SGD(parameters(), lr=0.5, momentum=0.5),
    ]
    wheel = built([*given(definitions), *more], tmp_path, name="shipped-optimizers")
    assert wheel.optimizers == ("Adam", "Averaged", "Trusting", "SGD")
    cases = [case for case, (*_, by_kernels) in (judge.CASES | judge.AT_NIGHT).items() if by_kernels]
    results, _ = judged_in(unpacked(wheel.path, tmp_path / "site"), *cases, "unscaled")
    for case in cases:
        assert_same(results[case][0], judge.trained(definitions, case))
    assert_same(results["unscaled"][0], judge.unscaled(definitions))


READY = [name for name in opwright.optim.__all__ if name != "DerivedOptimizer"]


@pytest.mark.parametrize("name", mostly_at_night(READY, by_day=READY[::3]))
def test_the_text_of_a_ready_optimizer_is_the_optimizer(name: str) -> None:
    cls = getattr(opwright.optim, name)
    planned = cls.plan_for_wheel([cls], [torch.float32], CPP)
    refuse_unfaithful_optimizer(building._reference_module([], [planned]), planned)


@pytest.mark.nightly
def test_kernels_for_gpus_are_right_where_they_run_on_the_processor(definitions: Any, tmp_path: Path) -> None:
    wheel = built(given(definitions)[1:3], tmp_path, name="shipped-optimizers", on_host=True, cuda="9.0")
    site = unpacked(wheel.path, tmp_path / "site")
    assert len(list((site / PACKAGE / "lib/cuda").iterdir())) == 9  # three ways to scale, and two through `warm`
    cases = ["usual", "other numbers", "tensors as numbers", "clipped", "momentum", "unscaled"]
    results, _ = judged_in(site, *cases)
    for case in cases:
        right = judge.unscaled(definitions) if case == "unscaled" else judge.trained(definitions, case)
        assert_same(results[case][0], right)


def test_the_judge_notices_other_numbers(judged: Any, definitions: ModuleType) -> None:
    with pytest.raises(AssertionError):
        assert_same(judged[0]["usual"][0], judge.trained(definitions, "other numbers"))


def test_the_wheel_says_what_it_holds(wheel: Wheel, site: Path) -> None:
    assert wheel.operators == (f"{PACKAGE}::doubled",)
    assert wheel.optimizers == ("Adam", "Averaged", "Trusting")
    text = (site / PACKAGE / "reference.py").read_text()
    assert "from .runtime.packaged_optimizers import optimizer" in text
    assert '@optimizer(state=("exp_avg", "exp_avg_sq"))\ndef Adam(' in text
    assert "opwright" not in text


def test_kernels_serve_all_sizes_if_nothing_asks_for_them(definitions: Any) -> None:
    (of_all,) = kinds(definitions.Adam(parameters(SHAPES)))
    assert "is_flat=True" in of_all
    assert of_all.startswith("Kind(sizes=(), ")
    assert len(kinds(definitions.ByRank(parameters(SHAPES)))) == 3


@pytest.mark.nightly
def test_the_numbers_of_a_later_step_have_kernels() -> None:
    records = derived(opwright.optim.RAdam(parameters(MATRIX))).records
    assert {len(of_kind) for of_kind in records.values()} == {2}


def kinds(optimizer: Any) -> list[str]:
    return list(derived(optimizer).records)


def derived(optimizer: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "_WAYS", planning._WAYS[:1])
        return type(optimizer).plan_for_wheel([optimizer], [torch.float32], CPP).kernels


def test_planning_draws_no_random_numbers(definitions: Any) -> None:
    before = torch.get_rng_state()
    optimizer = definitions.Adam(parameters(MATRIX, torch.bfloat16), rounding="stochastic")
    after = torch.get_rng_state()
    derived(optimizer)
    assert torch.equal(torch.get_rng_state(), after)
    assert not torch.equal(before, after)


def test_what_a_wheel_cannot_hold_is_refused(definitions: Any, tmp_path: Path) -> None:
    without_decorator = opwright.optimizer()(definitions.doubled.reference.__globals__["plain_update"])
    cases = [
        (definitions.WithoutRate, "WithoutRate has no default for lr, so nothing is known of what to build"),
        (torch.optim.SGD, "SGD is neither an operator nor an optimizer of opwright"),
        (without_decorator, "plain_update is not decorated where it is defined"),
        (nested(torch.ones(2)), "Nested uses scale, a value of type Tensor"),
    ]
    for given, words in cases:
        with pytest.raises((SamplesMissing, WheelUnsupported)) as refused:
            built([given], tmp_path / "dist")
        assert words in str(refused.value)
        assert not (tmp_path / "dist").exists()


def nested(scale: Any) -> Any:
    @opwright.optimizer()
    def Nested(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
        return (param - lr * scale.sum() * grad,)

    return Nested


def test_a_text_that_steps_otherwise_is_refused(definitions: Any) -> None:
    planned = definitions.Adam.plan_for_wheel([definitions.Adam(parameters(MATRIX))], [torch.float32], CPP)
    assert planned.agrees(definitions.Adam)
    assert not planned.agrees(definitions.Averaged)

    @opwright.optimizer(state=("exp_avg", "exp_avg_sq"))
    def Other(param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, step: Any, *, lr: float = 1e-3,
              betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2) -> Any:  # fmt: skip
        return definitions.Adam.definition.function(param, 1.001 * grad, exp_avg, exp_avg_sq, step, lr=lr, betas=betas,
                                                    eps=eps, weight_decay=weight_decay)  # fmt: skip

    assert not planned.agrees(Other)

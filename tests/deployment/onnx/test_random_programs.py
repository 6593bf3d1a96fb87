"""Random functions as operators in ONNX models: functions and our kernels, against eager."""

import re
from collections.abc import Callable

import pytest
import torch

import opwright
from opwright.deployment.deploying import deploy
from opwright.errors import DeploymentFailed, DeploymentUnsupported
from tests.random_program import random_program

pytestmark = [
    pytest.mark.filterwarnings("ignore:Tensor.mT is deprecated on 0-D tensors"),
    pytest.mark.filterwarnings("ignore:var.*degrees of freedom is <= 0"),
]
SEEDS = range(40)  # of which half are in float64, for which ONNX Runtime has few kernels
LEAST_RIGHT = {"function": 0.8, "custom": 0.4}  # the others are refused by name, or by ONNX Runtime when it loads them


def refusal(deploying: Callable[[], object]) -> str:
    """What is said against a model, when it is written or when ONNX Runtime loads it; "" if it is right.

    Other failures, such as results that differ, are raised.
    """
    try:
        deploying()
    except DeploymentUnsupported as unsupported:
        return unsupported.fact
    except DeploymentFailed as failed:
        if not re.search("does not load it|ONNX finds a fault", failed.fact):
            raise
        return failed.fact
    return ""


@pytest.mark.nightly
@pytest.mark.seconds(1200)
@pytest.mark.parametrize("form", LEAST_RIGHT)
def test_random_functions_agree_with_eager(tmp_path, form):
    """Every one is right or refused; inputs lie row by row, as ONNX has them."""
    pytest.importorskip("onnxruntime")
    tried, refused = 0, {}
    for seed in SEEDS:
        program = random_program(seed)
        if program.inputs[0].dtype is not torch.float32:
            continue
        tried += 1
        operator = opwright.operator(name=f"random_onnx_{form}::program_{seed}")(program.function())
        given = [each.detach().contiguous() for each in program.arguments(program.sizes)]
        how = {"to": "onnx", "at": tmp_path / str(seed), "operators": form}
        if said := refusal(lambda operator=operator, given=given, how=how: deploy(operator, given, **how).check()):
            refused[seed] = said
    assert len(refused) <= (1 - LEAST_RIGHT[form]) * tried, refused


def test_wrong_results_are_no_refusals():
    def wrong():
        raise DeploymentFailed("out computes something else than eager")

    with pytest.raises(DeploymentFailed):
        refusal(wrong)

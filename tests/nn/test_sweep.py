"""The modules of torch.nn: kernels or not, the results are those of the plain module."""

from __future__ import annotations

import pytest

from tests.nn.against_plain import compare
from tests.nn.module_table import cases, modules
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.built_together

SOME = (
    *("AvgPool2d", "BatchNorm1d", "Bilinear", "CELU", "Conv1d", "CrossEntropyLoss", "Embedding", "GroupNorm"),
    *("Hardswish", "InstanceNorm1d", "LSTMCell", "PReLU", "RMSNorm", "SmoothL1Loss", "Softmax"),
)

UNUSABLE = {"FractionalMaxPool2d", "FractionalMaxPool3d"}  # their samples give random numbers of another dtype


def _judge(name: str, most: int) -> None:
    for training in (True, False):
        for module, args, kwargs in cases(name, training=training, most=most):
            compare(module, args, kwargs)


@pytest.mark.parametrize("name", mostly_at_night(SOME, by_day=SOME[::4]))
def test_some(name: str) -> None:
    _judge(name, most=1)


@pytest.mark.falls_back
@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, about arguments of its own samples
@pytest.mark.parametrize("name", sorted(set(modules()) - UNUSABLE))
def test_all(name: str) -> None:
    _judge(name, most=4)

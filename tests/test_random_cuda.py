"""Random functions as operators whose CUDA kernels run on the processor, against eager."""

from __future__ import annotations

import pytest

from opwright.settings import Settings
from tests.cuda_on_host import cuda_kernels, settings_on_host
from tests.test_random_programs import check

pytestmark = [  # what torch says of the functions themselves
    pytest.mark.filterwarnings("ignore:Tensor.mT is deprecated on 0-D tensors"),
    pytest.mark.filterwarnings("ignore:var.*degrees of freedom is <= 0"),
]


@pytest.fixture(scope="module")
def settings() -> Settings:
    return settings_on_host()


@pytest.mark.parametrize("seed", [22, pytest.param(1003, marks=pytest.mark.nightly)])
def test_random_program(seed: int, settings: Settings) -> None:
    with cuda_kernels():
        check(seed, settings, resized=True, for_gpus=True)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(50))
def test_many_random_programs(block: int) -> None:
    for seed in range(block * 20 + 8000, block * 20 + 8020):
        with cuda_kernels():
            check(seed, settings_on_host(), resized=True, for_gpus=True)

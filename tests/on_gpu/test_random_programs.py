"""Random functions on a GPU: results and derivatives against eager, at the sizes of the trace and at others."""

from __future__ import annotations

import pytest

from tests.on_gpu.device import DEVICE, RUNG
from tests.quiet_settings import quiet_settings
from tests.test_random_programs import check

pytestmark = [
    pytest.mark.filterwarnings("ignore:Tensor.mT is deprecated on 0-D tensors"),
    pytest.mark.filterwarnings("ignore:var.*degrees of freedom is <= 0"),
    pytest.mark.falls_back,  # where it is for row-major inputs alone, which `check` asks for
]


@pytest.mark.parametrize("block", range(40))
def test_random_programs(block: int) -> None:
    wrong = {}
    for seed in range(20000 + block * 5, 20005 + block * 5):
        try:
            how = {"resized": seed % 2 == 0, "twice": seed % 3 == 0, "device": DEVICE, "rung": RUNG, "for_gpus": True}
            check(seed, quiet_settings(optimized=False), **how)
        except Exception as error:
            wrong[seed] = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    assert not wrong

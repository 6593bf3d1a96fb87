"""PyTorch's own test table with CUDA kernels that run on the processor: a sample by day, all of it at night."""

from __future__ import annotations

import pytest
import torch

from opwright.settings import Settings
from tests.cuda_on_host import ARCHITECTURES, cuda_kernels, machine_code, settings_on_host
from tests.opinfo.cases import DTYPES, operations
from tests.opinfo.coverage import rung_of
from tests.opinfo.worker import group_of, sweep_entry
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # PyTorch's samples use what PyTorch advises against
    pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning"),
]

SAMPLE = ("nn.functional.softplus", "masked.sum", "std_mean", "hypot")
BLOCKS = 40


@pytest.fixture(scope="module")
def settings() -> Settings:
    return settings_on_host()


def entries() -> list[str]:
    """Everything that PyTorch calls element-wise or a reduction."""
    chosen = [(n, i) for n, i in operations().items() if group_of(i) in ("pointwise", "reduction", "ufunc")]
    return [f"{name}|{dtype}" for dtype in DTYPES for name, info in chosen if DTYPES[dtype] in info.dtypes]


@pytest.mark.parametrize("name", mostly_at_night(SAMPLE, by_day=1))
def test_entry(name: str, settings: Settings) -> None:
    with cuda_kernels():
        record = sweep_entry(f"{name}|float32", 1, settings)
    assert not record["wrong"]
    assert rung_of(record) in ("kernel", "library"), record["reasons"]


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(BLOCKS))
def test_block(block: int, settings: Settings) -> None:
    torch.manual_seed(0)
    wrong = {}
    for entry in entries()[block::BLOCKS]:
        with cuda_kernels() as programs:
            record = sweep_entry(entry, 2, settings)
        for program in programs:
            for architecture in ARCHITECTURES:
                machine_code(program, architecture)
        if record["wrong"]:
            wrong[entry] = record["wrong"]
    assert not wrong

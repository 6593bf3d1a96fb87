"""PyTorch's own test table on a GPU: results and gradients against eager there."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from opwright.settings import Settings
from tests.on_gpu.device import DEVICE, RUNG
from tests.opinfo.cases import DTYPES, operations
from tests.opinfo.coverage import rung_of
from tests.opinfo.worker import sweep_entry
from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's samples use what PyTorch advises against

BLOCKS, SAMPLES = 80, 1


@pytest.fixture(scope="module")
def settings() -> Settings:
    compiler = quick_compiler(OPTIMIZING_NOTHING)
    return replace(Settings.from_environment(), compiler=compiler, notify=False, tape="now")


def entries() -> list[str]:
    """Every operation in float32, and those without it in float64."""
    return [
        f"{name}|{dtype}"
        for name, info in operations().items()
        if (dtype := next((each for each in DTYPES if DTYPES[each] in info.dtypesIfCUDA), None))
    ]


@pytest.mark.parametrize("block", range(BLOCKS))
def test_block(block: int, settings: Settings) -> None:
    wrong = {}
    for entry in entries()[block::BLOCKS]:
        torch.manual_seed(0)
        record = sweep_entry(entry, SAMPLES, settings, DEVICE, RUNG)
        if record["wrong"] or any("compiling" in reason for reason in record["reasons"]):
            wrong[entry] = record["wrong"] or dict(record["reasons"])
        print(entry, rung_of(record), dict(record["reasons"]), record["seconds"], flush=True)
    assert not wrong

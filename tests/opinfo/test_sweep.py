"""PyTorch's own test table: a sample of it in the ordinary tests, all of it at night."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from opwright.settings import Settings
from tests.opinfo.cases import DTYPES, case_of, operations, samples_of
from tests.opinfo.coverage import page, rung_of
from tests.opinfo.judge import compared
from tests.opinfo.sweep import entries_of, read_records, sweep
from tests.opinfo.worker import sweep_entry
from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler
from tests.suite.kept_libraries import another_cache
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # PyTorch's samples use what PyTorch advises against
    pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning"),
]

# One or two of every family, and what was wrong once.
KERNELS = ("angle", "argmax", "hsplit", "nn.functional.softplus", "round.decimals_3", "signbit")
WITH_CALLS = (
    *("__getitem__", "addmv", "as_strided", "bernoulli", "clamp", "copysign", "cross", "diag_embed", "dist", "fmax"),
    *("gather", "hypot", "index_add", "isin", "linalg.cholesky", "linalg.inv", "linalg.vector_norm", "masked.sum"),
    *("matmul", "nn.functional.bilinear", "nn.functional.conv2d", "nn.functional.dropout"),
    *("nn.functional.embedding_bag", "nn.functional.group_norm", "nn.functional.max_pool2d"),
    *("nn.functional.pad.reflect", "nn.functional.soft_margin_loss", "norm", "normal", "rand_like", "scatter", "sort"),
    *("std_mean", "stft", "triu", "unbind"),
)
SAMPLES = 1


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(another_cache(), compiler=quick_compiler(OPTIMIZING_NOTHING), notify=False, tape="now")


@pytest.mark.parametrize(
    "name", mostly_at_night([*KERNELS, *WITH_CALLS], by_day=(*KERNELS, *WITH_CALLS[::4], "nn.functional.pad.reflect"))
)
def test_entry(name: str, settings: Settings) -> None:
    record = sweep_entry(f"{name}|float32", SAMPLES, settings)
    assert not record["wrong"]
    assert rung_of(record) in (("kernel",) if name in KERNELS else ("kernel", "library")), record["reasons"]


def test_a_wrong_result_is_noticed() -> None:
    info = operations()["hypot"]
    case = case_of(info, next(samples_of(info, torch.float32, 1)))
    assert not compared(case, case.function)
    assert compared(case, lambda *tensors: tuple(o * 1.001 for o in case.function(*tensors)))


def test_a_page(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    served = {
        "exp|float32": {"kernel": 2},
        "exp|float64": {"library": 1, "kernel": 1},
        "unique|float32": {"reference": 1},
    }
    common = {"group": "pointwise", "reasons": {"its shape | depends on data": 1}, "calls": {"mm": 1}, "wrong": []}
    file.write_text("".join(json.dumps({"entry": e, "served": s} | common) + "\n" for e, s in served.items()))
    text = page(read_records(file))
    assert "| float32 | 1 of 2 (50.0%) | 1 of 2 (50.0%) | 1 of 2 (50.0%) | 0 |" in text
    assert "| float64 | 1 of 1 (100.0%) | 0 of 1 (0.0%) | 0 of 1 (0.0%) | 0 |" in text
    assert "| mm | exp |" in text
    assert "| exp | kernel | library |" in text
    assert "| 1 | its shape \\| depends on data | unique float32 |" in text


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", DTYPES)
def test_everything(dtype: str, tmp_path: Path) -> None:
    file, cache = tmp_path / "records.jsonl", tmp_path / "cache"
    sweep(entries_of([], [dtype]), file, 4, {"cache": str(cache), "compiler": quick_compiler()}, jobs=2)
    records = read_records(file)
    assert not [(entry, record["wrong"]) for entry, record in records.items() if record["wrong"]]
    assert not [entry for entry, record in records.items() if rung_of(record) == "crash"]

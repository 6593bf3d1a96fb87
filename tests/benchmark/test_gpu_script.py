"""benchmarks/gpu.py: it refuses where there is no GPU, and runs where one is pretended."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
import torch

from opwright.benchmark.stopwatch import Plan
from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler
from tests.suite.warm_python import run

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.nightly
def test_without_a_gpu_it_says_so_and_measures_nothing(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = run(str(SCRIPTS / "gpu.py"), "--json", str(file), env=environment)

    assert (done.returncode, done.stdout, file.exists()) == (2, "", False)
    assert done.stderr.startswith("nothing was measured: ")
    assert len(done.stderr.splitlines()) == 1


class Clock:
    """Stands for `GpuClock`."""

    def __init__(self, _: str) -> None:
        pass

    def __call__(self, thunk, count):
        begin = time.perf_counter_ns()
        thunk()
        return time.perf_counter_ns() - begin


@pytest.mark.nightly
def test_with_kernels_on_the_processor_every_part_of_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPWRIGHT_CUDA_ON_HOST", "1")
    monkeypatch.setenv("OPWRIGHT_TAPE", "off")
    monkeypatch.setenv("CXX", quick_compiler(OPTIMIZING_NOTHING, "g++"))
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import gpu
    import gpu_checks
    import gpu_operators

    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "a pretended GPU")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    without_queues = ("odd and empty sizes", "layouts", "every GPU that is here")
    monkeypatch.setattr(gpu_checks, "_CHECKS", {name: gpu_checks._CHECKS[name] for name in without_queues})
    monkeypatch.setattr(gpu_checks, "SAMPLES", {gpu_checks.softmax: gpu_checks.shapes("R C", R=2, C=5)})
    small = [
        gpu_operators.Course(function, kinds, 4, 1024, torch.float32, passes)
        for function, kinds, passes in ((gpu_operators.gated, "xx", 8), (gpu_operators.softmax, "x", None))
    ]
    monkeypatch.setattr(gpu, "courses", lambda _: small)
    monkeypatch.setattr(gpu, "DEVICE", "cpu")
    monkeypatch.setattr(gpu, "GpuClock", Clock)
    monkeypatch.setattr(gpu, "copy_bandwidth", lambda _: 1e10)
    monkeypatch.setattr(gpu, "compiled", lambda function: function)
    monkeypatch.setattr(gpu, "STEPS", ((2, 3, 4),))
    monkeypatch.setattr(gpu, "PLAN", Plan(slice_ns=1, fewest_rounds=2, most_rounds=2))
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--json", str(tmp_path / "gpu.json")])

    assert gpu.main() == 0
    record = json.loads((tmp_path / "gpu.json").read_text())
    (card,) = record["benchmarks"]
    assert record["checks"] == dict.fromkeys([*without_queues, "check softmax"], "")
    assert [row["name"].partition(",")[0] for row in card["rows"]] == [
        *("gated", "softmax", "LLTM step 2", "LLTM step 2", "launch: an operator of one kernel")
    ]
    assert all(row["figures"]["opwright"] > 0 for row in card["rows"])
    assert any("share of the copy" in target["what"] for target in card["targets"])
    assert "a pretended GPU" in capsys.readouterr().out

"""Parts of checks, audits and tests: together they are the whole, wherever they run."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from functools import partial
from typing import Any

import pytest
import torch
from torch.nn import functional

import opwright
from opwright.checking import Row, Verdict
from opwright.checking.parts import part_of
from opwright.checking.verdict import together
from tests.auditing import planted
from tests.sharding.checked import spread_scaled_rows

SAMPLES = opwright.shapes("B S", B=3, S=5)
QUICKLY = {"quick": True, "dtypes": (torch.float64,)}


class _Here(Executor):
    """Runs what it is given at once."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given.append(kwargs["part"])
        found: Future[Any] = Future()
        found.set_result(function(*args, **kwargs))
        return found


@pytest.mark.parametrize("count", [1, 2, 3, 7, 12])
def test_parts_are_the_whole(count: int) -> None:
    parts = [part_of(range(10), f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(item for part in parts for item in part) == list(range(10))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("part", ["0/3", "4/3", "1/0", "2", "a/b", "1/2/3", " 1/2"])
def test_a_part_is_written_in_one_way(part: str) -> None:
    with pytest.raises(ValueError, match="i/n"):
        part_of((), part)


def test_a_check_in_parts_finds_what_the_whole_finds() -> None:
    run = partial(opwright.check, torch.sigmoid, functional.silu, SAMPLES)  # which is wrong
    whole, here = run(**QUICKLY), _Here()
    found = run(executor=here, parts=3, **QUICKLY)
    assert here.given == ["1/3", "2/3", "3/3"]
    assert not whole.passed
    assert found.left_out == whole.left_out
    assert {(row.check, row.sample, row.status) for row in found.rows} == {
        (row.check, row.sample, row.status) for row in whole.rows
    }
    assert len(found.rows) == len(whole.rows)
    (first, *_) = (run(part=f"{number}/3", **QUICKLY) for number in (1, 2, 3))
    assert 0 < len(first.rows) < len(whole.rows)
    assert first.to_json()["part"] == "1/3"


def test_a_rung_is_served_if_one_part_says_so() -> None:
    served = [Row("cpp", "served", "", status) for status in ("skipped", "passed")]
    right = Row("cpp", "values", "B=3", "passed")
    assert together([Verdict("f", (right, served[0]), part="1/2"), Verdict("f", (served[1],), part="2/2")]).passed
    assert not together([Verdict("f", (right, served[0]), part="1/2"), Verdict("f", (served[0],), part="2/2")]).passed


def test_a_part_without_checks_has_not_failed() -> None:
    found = opwright.check(torch.sigmoid, torch.sigmoid, SAMPLES, part="99/99", **QUICKLY)
    assert found.passed
    assert not opwright.check(torch.sigmoid, functional.silu, SAMPLES, part="1/9", **QUICKLY).passed


def test_an_audit_in_parts_finds_what_the_whole_finds() -> None:
    options = {"quick": True, "only": ("copies",)}
    run = partial(opwright.audit, planted.rewritten, planted.cell, opwright.shapes("B S", "B S", B=4, S=8))
    whole, found = run(**options), run(executor=_Here(), parts=2, **options)
    assert sorted(row.name for row in found.rows) == sorted(row.name for row in whole.rows)
    assert {row.name: row.state for row in found.rows} == {row.name: row.state for row in whole.rows}


def _in_processes(executor: Executor) -> None:
    found = opwright.check(torch.sigmoid, functional.silu, SAMPLES, executor=executor, parts=2, **QUICKLY)
    assert not found.passed
    assert {row.status for row in found.rows} >= {"passed", "failed"}


@pytest.mark.nightly
def test_processes_check() -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        _in_processes(executor)


@pytest.mark.nightly
@pytest.mark.seconds(300)
def test_a_cluster_checks_and_audits() -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        workers = {executor.submit(os.getpid, pure=False).result() for _ in range(20)}
        assert os.getpid() not in workers
        _in_processes(executor)
        verdict = opwright.check(spread_scaled_rows, executor=executor, parts=4, **QUICKLY)
        assert verdict.passed, verdict.rows
        assert {row.rung for row in verdict.rows} >= {"cpp"}
        options = {"quick": True, "only": ("copies",)}
        samples = opwright.shapes("B S", "B S", B=4, S=8)
        audit = opwright.audit(planted.rewritten, planted.cell, samples, executor=executor, parts=2, **options)
        wrong = opwright.audit(planted.off, planted.cell, samples, executor=executor, parts=2, quick=True)
        assert audit.rows
        assert audit.passed
        assert not wrong.passed


def test_tests_run_in_parts(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('n', range(5))\ndef test(n): pass")
    pytester.makeconftest(
        "from tests.suite.part import pytest_collection_modifyitems\n"
        "def pytest_addoption(parser): parser.addoption('--part', default='')"
    )
    pytester.runpytest("--part", "2/2").assert_outcomes(passed=2, deselected=3)
    assert "i/n" in str(pytester.runpytest("--part", "3/2").stderr)

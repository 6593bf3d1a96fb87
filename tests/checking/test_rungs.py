"""An operator's rungs are judged one by one, and none passes by another's merit."""

from dataclasses import replace

import pytest
import torch

from opwright.checking import check
from opwright.errors import NoKernel
from opwright.samples import shapes
from tests.fake_operator import FakeOperator, scale

SAMPLES = shapes("B S", "B S", B=4, S=40)


def written(x, y):
    return x.mul(y.sigmoid())


def wrong(x, y):
    return scale(x, y) * 1.01


def no_kernel(x, y):
    raise NoKernel("float64 has no kernel")


def statuses(verdict, rung):
    return {row.check: row.status for row in verdict.rows if row.rung == rung}


def test_each_available_rung_and_the_whole_are_judged():
    verdict = check(FakeOperator(scale, SAMPLES, {"function": written, "cpp": written}))
    assert {row.rung for row in verdict.rows} == {"function", "cpp", "operator"}
    assert verdict.passed, str(verdict)
    assert statuses(verdict, "cpp")["served"] == "passed"


def test_a_wrong_rung_fails_where_it_is_wrong():
    verdict = check(FakeOperator(scale, SAMPLES, {"function": wrong, "cpp": written}))
    assert {row.rung for row in verdict.rows if row.status == "failed"} == {"function"}


@pytest.mark.falls_back
def test_a_rung_that_another_serves_fails():
    verdict = check(FakeOperator(scale, SAMPLES, {"cpp": written}, served={"cpp": "composed"}))
    found = [row for row in verdict.rows if row.rung == "cpp"]
    assert {row.status for row in found if row.check == "values"} == {"skipped"}
    assert found[0].detail == "your function serves such calls"
    assert [str(row) for row in found if row.status == "failed"] == [
        "failed: cpp, served: it served no call; your function did"
    ]


def test_empty_tensors_may_be_served_by_the_reference():
    operator = FakeOperator(scale, SAMPLES)

    def cpp(x, y):
        operator._served["cpp"] = "cpp" if x.numel() else "composed"
        return written(x, y)

    operator._rungs["cpp"] = cpp
    verdict = check(operator)
    assert verdict.passed, str(verdict)
    assert statuses(verdict, "cpp")["edge sizes"] == "passed"


def test_a_rung_without_a_kernel_for_anything_fails():
    verdict = check(FakeOperator(scale, SAMPLES, {"cpp": no_kernel, "function": written}))
    assert statuses(verdict, "cpp")["values"] == "skipped"
    assert statuses(verdict, "cpp")["served"] == "failed"


def test_a_missing_rung_is_a_row_with_the_reason():
    verdict = check(FakeOperator(scale, SAMPLES, {"cuda": "there is no GPU here"}))
    assert "cuda is not here: there is no GPU here" in str(verdict)
    assert verdict.passed


@pytest.fixture(scope="module")
def library():
    with torch.library._scoped_library("opwright_checking", "FRAGMENT") as scoped:
        scoped.define("right(Tensor x, Tensor y) -> Tensor")
        scoped.define("aliasing(Tensor x, Tensor y) -> Tensor")
        scoped.impl("right", scale, "CompositeImplicitAutograd")
        scoped.impl("aliasing", lambda x, y: x, "CompositeExplicitAutograd")
        yield torch.ops.opwright_checking


@pytest.mark.parametrize(("name", "status"), [("right", "passed"), ("aliasing", "failed")])
def test_opcheck_judges_the_whole_once(library, name, status):
    overload = getattr(library, name).default
    verdict = check(FakeOperator(scale, SAMPLES, {"cpp": written}, overload=overload))
    assert [(row.rung, row.status) for row in verdict.rows if row.check == "opcheck"] == [("operator", status)]


class FakeOperatorOfTwoDevices(FakeOperator):
    """Its rung "cuda" serves tensors on a GPU alone."""

    def rungs(self):
        return tuple(replace(rung, devices=("cuda",) if rung.name == "cuda" else ()) for rung in super().rungs())


def test_a_rung_for_another_device_is_missing_and_not_wrong():
    verdict = check(FakeOperatorOfTwoDevices(scale, SAMPLES, {"cuda": wrong, "cpp": written}))
    assert verdict.passed, str(verdict)
    assert "cuda is not here: it serves tensors on cuda, but the samples are on cpu" in str(verdict)

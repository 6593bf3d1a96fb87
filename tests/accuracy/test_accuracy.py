"""Values and gradients of some 140 functions are within twice eager's rms error and three times its worst, or 4 ulp."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from opwright.errors import FallbackRefused
from tests.accuracy.comparison import Comparison, Figures
from tests.accuracy.draws import Shape
from tests.accuracy.measure import QUICKLY, Together, chunks, measure, measure_samples, operator_of
from tests.accuracy.subject import Subject
from tests.accuracy.tables import EXCEPTIONAL_FACTOR, EXCEPTIONS, FAMILIES
from tests.quiet_settings import quiet_settings

SAMPLING = 1.15  # the noise of an rms error over 64 rows that each share one error
BY_DAY, AT_NIGHT = (torch.float32,), (torch.bfloat16, torch.float16)
HELD_ELSEWHERE = ("activations", "densities")  # by day to eager, in tests/lowering/pointwise
NIGHTLY = (*HELD_ELSEWHERE, "distances and complex numbers", "losses")  # the last two are long
RANGES_BY_DAY = ("large", "delicate", "sorted", "offset")  # where most faults were found
LENGTHS = ((4096, 1), (512, 7), (7, 4096), (1, 100_000), (4096, 7), (100_000, 1))


def _cases(dtypes: tuple[torch.dtype, ...], chunks_by_day: int | None = None) -> list[object]:
    night = pytest.mark.nightly
    return [
        pytest.param(
            chunk,
            dtype,
            id=f"{str(dtype).removeprefix('torch.')}-{family}-{number}",
            marks=[] if chunks_by_day is None or (number < chunks_by_day and family not in NIGHTLY) else [night],
        )
        for dtype in dtypes
        for family, subjects in FAMILIES.items()
        for number, chunk in enumerate(chunks(subjects, dtype))
    ]


def _ranges(subjects: dict[str, Subject]) -> list[str]:
    return list(dict.fromkeys(name for subject in subjects.values() for name in subject.ranges))


def _assert_kept(name: str, dtype: torch.dtype, range_name: str, what: str, figures: Figures) -> None:
    slack = SAMPLING * (EXCEPTIONAL_FACTOR if (name, dtype, what) in EXCEPTIONS else 1.0)
    assert figures.are_kept(slack), (
        f"{name}, {range_name}, {what}: {figures.rms_ratio:.2f} times eager's rms error and "
        f"{figures.worst_ratio:.2f} times its worst, {figures.ours.ulps:.1f} ulp"
    )


@pytest.mark.parametrize(("subjects", "dtype"), _cases(BY_DAY, chunks_by_day=1))
def test_promise_is_kept(subjects: dict[str, Subject], dtype: torch.dtype) -> None:
    operator = operator_of(list(subjects.values()), replace(quiet_settings(optimized=False), notify=True))
    for range_name in set(RANGES_BY_DAY).intersection(_ranges(subjects)):
        for name, what, figures in measure_samples(operator, subjects, dtype, range_name, samples=QUICKLY):
            _assert_kept(name, dtype, range_name, what, figures)


@pytest.mark.parametrize("family", FAMILIES)
def test_three_times_the_error_is_noticed(family: str) -> None:
    subjects = dict(FAMILIES[family])
    eager = Together(tuple(subjects.values()))
    for name, found in measure(eager, subjects, torch.float32, "normal"):
        assert found.figures().are_kept()
        assert not found.planted().figures().are_kept(SAMPLING), (name, found.what)


def test_a_number_lost_is_noticed() -> None:
    exact = torch.ones(8, dtype=torch.float64)
    lost = torch.tensor([float("nan"), *[1.0] * 7])
    assert not Comparison("value", lost, torch.ones(8), exact).figures().are_kept(SAMPLING)


def test_a_function_without_kernels_is_noticed() -> None:
    refused = {"chosen by a value": Subject(lambda x, p: x * p if x.sum() > 0 else x / p, "xp")}
    operator = operator_of(list(refused.values()), replace(quiet_settings(optimized=False), notify=True))
    with pytest.raises(FallbackRefused):
        list(measure(operator, refused, torch.float32, "normal"))


@pytest.mark.nightly
@pytest.mark.parametrize(("subjects", "dtype"), _cases((*BY_DAY, *AT_NIGHT)))
def test_promise_is_kept_as_users_build(subjects: dict[str, Subject], dtype: torch.dtype) -> None:
    operator = operator_of(list(subjects.values()), replace(quiet_settings(), notify=True))
    for range_name in _ranges(subjects):
        for name, what, figures in measure_samples(operator, subjects, dtype, range_name):
            _assert_kept(name, dtype, range_name, what, figures)


@pytest.mark.nightly
@pytest.mark.parametrize("shape", LENGTHS, ids=str)
@pytest.mark.parametrize("family", ["softmaxes", "norms", "reductions"])
def test_rows_and_columns_of_every_length(family: str, shape: Shape) -> None:
    fitting = {name: subject for name, subject in FAMILIES[family].items() if subject.fits(shape)}
    for subjects in chunks(fitting, torch.float32):
        operator = operator_of(list(subjects.values()), replace(quiet_settings(), notify=True))
        for name, what, figures in measure_samples(operator, subjects, torch.float32, "normal", shape):
            _assert_kept(name, torch.float32, str(shape), what, figures)

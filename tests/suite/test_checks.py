"""The suite's own checks find planted slow tests, and planted tests that depend on others."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace

import pytest
from _pytest import timing

from tests.suite import backwards
from tests.suite.time_limit import TimeLimit

SLOW = """
    import pytest
    from _pytest import timing as time

    @pytest.fixture
    def slow():
        time.sleep(0.3)

    def test_quick(): pass

    def test_slow(): time.sleep(0.3)

    def test_slow_setup(slow): pass

    @pytest.mark.seconds(100)
    def test_says_so(): time.sleep(0.3)

    @pytest.mark.seconds(0.25)
    def test_says_less(): time.sleep(0.3)

    @pytest.mark.nightly
    def test_nightly(): time.sleep(0.3)

    def test_skipped():
        time.sleep(0.3)
        pytest.skip("after a while")

    def test_failed():
        time.sleep(0.3)
        raise AssertionError("wrong")

    def test_uncounted(request):
        request.config.pluginmanager.get_plugin("limit").uncounted(time.sleep)(0.3)
"""
FOUND = {
    "test_slow": "its call took 0.3 s; the limit is 0.2 s",
    "test_slow_setup": "its setup took 0.3 s; the limit is 0.2 s",
    "test_says_less": "its call took 0.3 s; the limit is 0.25 s",
    "test_failed": "AssertionError: wrong",
}
IN_ORDER = """
    made, spoilt = [], []

    def test_makes(): made.append(1)

    def test_needs_what_another_makes(): assert made

    def test_needs_what_another_spoils(): assert not spoilt

    def test_spoils(): spoilt.append(1)
"""


class Failures:
    """A plugin that notes why tests fail."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.found[report.location[2]] = report.longreprtext


def failures(pytester: pytest.Pytester, text: str, *options: str, crowd: float = 1.0) -> dict[str, str]:
    """Why tests of a file fail, under the checks."""
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--backwards', action='store_true')")
    pytester.makeini("[pytest]\nmarkers = nightly")
    pytester.makepyfile(textwrap.dedent(text))
    noted = Failures()

    class Registering:
        def pytest_configure(self, config: pytest.Config) -> None:
            config.pluginmanager.register(TimeLimit(0.2, lambda: crowd), "limit")
            config.pluginmanager.register(backwards)

    quick = ("-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception")
    with pytest.MonkeyPatch.context() as patch:
        clock = timing.MockTiming()
        clock.patch(patch)
        patch.setattr("tests.suite.time_limit.time", SimpleNamespace(perf_counter=clock.time))
        pytester.runpytest_inprocess(*quick, *options, plugins=[Registering(), noted])
    return noted.found


def test_slow_tests_fail(pytester: pytest.Pytester) -> None:
    found = failures(pytester, SLOW)
    assert found.keys() == FOUND.keys()
    assert all(FOUND[name] in text for name, text in found.items()), found
    assert "hint: make it shorter" in found["test_slow"]


def test_a_busy_machine_gives_more_time(pytester: pytest.Pytester) -> None:
    assert failures(pytester, SLOW, crowd=100.0).keys() == {"test_failed"}


@pytest.mark.parametrize(
    ("options", "found"),
    [((), set()), (("--backwards",), {"test_needs_what_another_makes", "test_needs_what_another_spoils"})],
)
def test_tests_that_depend_on_others_fail_backwards(
    options: tuple[str, ...], found: set[str], pytester: pytest.Pytester
) -> None:
    assert failures(pytester, IN_ORDER, *options).keys() == found

"""A rehearsal builds what tests will ask for, and leaves no other trace of itself."""

from __future__ import annotations

import pytest

TESTS = """
import pytest
import torch
from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings

MARKED
seen = []

@pytest.mark.parametrize("number", range(2, 6))
def test_number(number, tmp_path):
    def reference(x):
        return torch.sin(x) * number
    operator = Operator(reference, name="rehearsed", settings=quiet_settings(optimized=False))
    x = torch.ones(3)
    result = operator(x)
    seen.append((number, operator.last_rung))
    assert torch.equal(result, reference(x)) and number != 4
    assert operator.last_rung == "cpp"

def test_at_the_end():
    print("SEEN", seen)
"""


@pytest.mark.seconds(60)
@pytest.mark.parametrize("marked", [True, False])
def test_tests_end_as_they_do_without(marked: bool, pytester: pytest.Pytester, request: pytest.FixtureRequest) -> None:
    pytester.makeconftest(
        "from tests.suite.rehearsal import Rehearsal\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(Rehearsal())\n"
    )
    pytester.makepyfile(TESTS.replace("MARKED", "pytestmark = pytest.mark.built_together" if marked else ""))
    path = f"pythonpath={request.config.rootpath}"
    ran = pytester.runpytest_subprocess("-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", path)
    ran.assert_outcomes(passed=4, failed=1)
    real = [(number, "cpp") for number in (2, 3, 4, 5)]
    rehearsed = [(number, "composed") for number in (2, 3, 4, 5)] if marked else []
    ran.stdout.fnmatch_lines([f"*SEEN {[*rehearsed, *real]}".replace("[", "[[]")])

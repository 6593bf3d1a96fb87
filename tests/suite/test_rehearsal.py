"""A rehearsal builds what tests will ask for, and leaves no other trace of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suite.rehearsal import _digest_of_files
from tests.suite.warm_python import run

TESTS = """
import pytest
import torch
from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings

seen = []

@pytest.mark.built_together
@pytest.mark.parametrize("number", range(2, 5))
def test_number(number, tmp_path):
    def reference(x):
        return torch.sqrt(x + 1) * number
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
def test_tests_end_as_they_do_without(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> None:
    pytester.makeconftest(
        "from pathlib import Path\nfrom tests.suite.rehearsal import Rehearsal\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(Rehearsal(Path.cwd()))\n"
    )
    pytester.makepyfile(TESTS)
    options = ("-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", f"pythonpath={request.config.rootpath}")
    real = [(number, "cpp") for number in (2, 3, 4)]
    rehearsed = [(number, "composed") for number in (2, 3, 4)]
    for seen in ([*rehearsed, *real], real):
        ran = run("-m", "pytest", *options, cwd=pytester.path)
        assert "1 failed, 3 passed" in ran.stdout, ran.stdout
        assert f"SEEN {seen}\n" in ran.stdout


def test_a_rehearsal_is_repeated_when_a_file_changes(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    changing = tmp_path / "src" / "kernel.h"
    found = set()
    for text in ("1", "2"):
        changing.write_text(text)
        found.add(_digest_of_files.__wrapped__(tmp_path))
    assert len(found) == 2

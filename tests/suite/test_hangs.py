"""What hangs ends its process, and says where."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import time

def test_that_ends():
    pass

def test_that_hangs():
    time.sleep(60)
"""
PLUGIN = """
from tests.suite.hangs import Hangs

def pytest_configure(config):
    config.pluginmanager.register(Hangs({limit_s}))
"""


@pytest.mark.parametrize("limit_s", [0.5, 0])
def test_a_test_that_hangs(limit_s: float, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(PLUGIN.format(limit_s=limit_s))
    pytester.makepyfile(TESTS if limit_s else TESTS.replace("60", "1"))
    ran = pytester.runpytest_subprocess()
    if limit_s:
        assert ran.ret == 1
        assert "Timeout (0:00:00.5" in ran.stderr.str()
        assert "in test_that_hangs" in ran.stderr.str()
    else:
        ran.assert_outcomes(passed=2)

"""A test that takes the name of an operator of another module fails and says which."""

from __future__ import annotations

import pytest

from tests.suite.warm_python import run

SHARING = """
import torch
from opwright.api.operator import Operator

def {first}(x: torch.Tensor) -> torch.Tensor:
    return x.sin()

def plain(x: torch.Tensor) -> torch.Tensor:
    return x.cos()

shared = Operator({first})

def test_it_is_used():
    assert shared.overload is not None

def test_it_is_made_of_an_argument():
    for function in (plain,):
        Operator(function)

def test_what_comes_after():
    pass
"""


@pytest.mark.seconds(60)
@pytest.mark.parametrize(("first", "failed"), [("plain", 1), ("rippling", 0)])
def test_a_taken_name_is_noticed(
    pytester: pytest.Pytester, request: pytest.FixtureRequest, first: str, failed: int
) -> None:
    pytester.makeconftest(
        "from tests.suite.taken_names import TakenNames\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(TakenNames())\n"
    )
    pytester.makepyfile(SHARING.format(first=first))
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", "-o", f"pythonpath={request.config.rootpath}")
    said = run("-m", "pytest", *options, cwd=pytester.path).stdout
    assert ("replaced one that other tests share: opwright::plain" in said) == bool(failed), said
    assert (f"{failed} failed, {3 - failed} passed" if failed else "3 passed") in said, said

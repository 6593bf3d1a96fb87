"""`--backwards`: run the tests in reverse order, to find those that depend on another.

If one of two tests in a process needs or breaks the other, one of the two orders fails.
"""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--backwards"):
        items.reverse()

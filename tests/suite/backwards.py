"""`--backwards`: the tests from the last to the first, to find those that need what another did before.

Of two tests in one process, one of which needs the other or is spoilt by it, one order fails.
"""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--backwards"):
        items.reverse()

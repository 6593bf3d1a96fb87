"""`--part i/n`: run one of n parts of the tests, so that several machines share a night."""

from __future__ import annotations

import pytest

from opwright.checking.parts import part_of


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep every n-th of the tests that are selected."""
    try:
        kept = list(part_of(items, config.getoption("--part")))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    if len(kept) < len(items):
        chosen = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = kept

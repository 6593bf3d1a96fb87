"""Parameters of two ranks by day, and of four at night: a kernel is derived for each."""

from __future__ import annotations

import pytest

from tests.optim import trained

FEW_SHAPES = ((7, 5), (), (3, 4))


@pytest.fixture(params=["two ranks", pytest.param("four ranks", marks=pytest.mark.nightly)])
def ranks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `parameters` makes where a test names no shapes."""
    if request.param == "two ranks":
        monkeypatch.setattr(trained, "SHAPES", FEW_SHAPES)

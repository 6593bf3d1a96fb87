"""Parameters of two ranks by day, and of four at night, with a kernel for each; and steps that only kernels take."""

from __future__ import annotations

from typing import Any

import pytest

from opwright.optim.serving import buckets, plan
from tests.optim import trained

FEW_SHAPES = ((7, 5), (), (3, 4))


@pytest.fixture(params=["two ranks", pytest.param("four ranks", marks=pytest.mark.nightly)])
def ranks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `parameters` makes where a test names no shapes."""
    if request.param == "two ranks":
        monkeypatch.setattr(trained, "SHAPES", FEW_SHAPES)


@pytest.fixture
def no_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty tensors, which no kernel is valid for, are left to the definition."""
    composed = buckets.run_composed

    def refuse(definition: Any, hyper: Any, entry: Any, *rest: Any) -> None:
        assert 0 in entry.param.shape, "the definition serves"
        composed(definition, hyper, entry, *rest)

    for module in (buckets, plan):
        monkeypatch.setattr(module, "run_composed", refuse)

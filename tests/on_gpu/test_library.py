"""Every operator of the library on a GPU: judged as on the processor."""

from __future__ import annotations

from typing import Any

import pytest

import opwright.library
from opwright.checking import check
from tests.on_gpu.device import DEVICE, RUNG


@pytest.mark.parametrize("name", opwright.library.__all__)
def test_operator(name: str) -> None:
    operator: Any = getattr(opwright.library, name)
    verdict = check(operator, device=DEVICE, quick=True)
    assert verdict.passed, str(verdict)
    assert any(row.rung == RUNG and row.status == "passed" for row in verdict.rows), str(verdict)

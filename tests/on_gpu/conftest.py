"""Tests that need a GPU: `make gpu`. They are left out of every other run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.on_gpu.device import DEVICE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    absent = DEVICE.startswith("cuda") and not torch.cuda.is_available()
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.seconds(300))
            if absent:
                item.add_marker(pytest.mark.skip(reason="there is no GPU"))

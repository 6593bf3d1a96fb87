"""Rows of truth values are emitted so that GCC vectorises the loops that choose by them."""

from __future__ import annotations

import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.samples import Sample
from tests.quiet_settings import quiet_settings


def _samples(device: torch.device, dtype: torch.dtype) -> list[Sample]:
    return [
        Sample((torch.randn(8, 16, dtype=dtype, device=device), torch.ones(8, 16, dtype=torch.bool, device=device)))
    ]


def masked(x: Tensor, mask: Tensor) -> Tensor:
    """A choice by a mask."""
    return torch.where(mask, torch.exp(x), x)


def test_masks_are_read_as_bytes() -> None:
    source = Operator(masked, name="masked", samples=_samples, settings=quiet_settings()).source()
    assert "const uint8_t* mask_row = static_cast<const uint8_t*>(row[0]);" in source
    assert "const bool mask = mask_row[j] != 0;" in source

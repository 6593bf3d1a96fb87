"""A wrapper with metadata, for tests; the module is its own so that pickles find it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from opwright.tensors import Wrapper


class Meta(Wrapper, data=("elem",), meta=("owner",)):
    """A tensor that has an owner; the first one's where several meet."""

    @staticmethod
    def merge(metas: Sequence[Any]) -> Any:
        return metas[0]


class Sub(Meta, meta=("purpose",)):
    purpose = "none"


class Strict(Wrapper, data=("elem",), meta=("unit",)):
    """Metadata must agree, as it must unless a type says otherwise."""


class Pair(Wrapper, data=("low", "high")):
    """Two tensors of one shape, such as bounds."""


def owned(*sizes: int, owner: str = "me", dtype: torch.dtype = torch.float64) -> Any:
    return Meta(torch.randn(*sizes, dtype=dtype), owner)

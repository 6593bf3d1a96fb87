"""Which dtype an element-wise operation computes in."""

from __future__ import annotations

from typing import Any

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from opwright.errors import NoKernel
from opwright.ir.expressions.dtype import DType

_DTYPES = {getattr(torch, dtype.value): dtype for dtype in DType}


def program_dtype(dtype: torch.dtype) -> DType:
    """The Program's name for a torch dtype.

    Raises:
        NoKernel: If kernels do not hold that dtype.
    """
    if dtype not in _DTYPES:
        held = ", ".join(each.value for each in DType)
        raise NoKernel(
            f"kernels do not hold {str(dtype).removeprefix('torch.')}",
            hint=f"convert it with .to(...) outside of the operator; kernels hold {held}",
        )
    return _DTYPES[dtype]


def promoted(values: list[Any]) -> DType:
    """The dtype that torch compares tensors and numbers in."""
    _, common = elementwise_dtypes(*values, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
    return program_dtype(common)

"""Operations whose results depend on how an operand lies in memory, where it may lie otherwise in a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.errors import NoKernel
from opwright.tracing.torch_hooks import functorch

aten = torch.ops.aten

BY_STRIDES = {aten.as_strided, aten.as_strided_copy, aten.as_strided_scatter}
"""They read memory regardless of the tensor's layout."""

# They decompose a matrix or its transpose, whichever lies row by row; their formulas for gradients and tangents ask
# which it was. Tangents are pulled back instead, and right (`derivation/differentiable_once.py`).
_OF_EITHER_MATRIX = {aten._linalg_det.default, aten._linalg_slogdet.default}
# With `left=False` their results are conjugate views, of which a trace does not know.
_GIVE_CONJUGATES = {aten.linalg_lu_solve.default, aten._linalg_solve_ex.default, aten.linalg_solve_ex.default}
_HINT = "call .contiguous() on it before"


def is_of_either_matrix(func: OpOverload, args: tuple[Any, ...]) -> bool:
    """Whether the derivatives of an operation ask how its operand lies, which lies otherwise than row by row."""
    return func in _OF_EITHER_MATRIX and not args[0].is_complex() and not args[0].is_contiguous()


def refuse_what_lies_otherwise(func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse an operation whose operand does not lie row by row in a trace: a kernel computes it row by row.

    Raises:
        NoKernel: If it is such an operation, or one that gives conjugate views.
    """
    if func.overloadpacket in BY_STRIDES and not args[0].is_contiguous():
        name = func.overloadpacket.__name__
        raise NoKernel(f"the function reads a tensor by {name} that does not lie row by row", hint=_HINT)
    if is_of_either_matrix(func, args) and not functorch.is_forward_mode():
        raise NoKernel("the function takes the determinant of a matrix that does not lie row by row", hint=_HINT)
    if func in _GIVE_CONJUGATES and not kwargs.get("left", True) and args[0].is_complex():
        fact = "the function solves complex equations for what stands on the left (left=False)"
        raise NoKernel(fact, hint="solve the transposed equations")

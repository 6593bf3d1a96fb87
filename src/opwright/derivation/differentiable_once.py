"""Operations whose tangents PyTorch cannot differentiate: its formula takes a result that was saved as a constant.

The tangent itself is right. What follows from it again, in either mode, is silently wrong; reverse mode is right at
every order. Norms, of which that is not true, are composed of other functions (`tracing/decompositions/composed.py`).
`tests/opinfo/test_second_derivatives.py` looks for such operations in PyTorch's whole table.

The tangent of a determinant asks how the matrix lies, which is known in no trace: if that lies otherwise than row by
row, it is refused as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.tracing.torch_hooks import functorch
from opwright.tracing.torch_hooks.layouts.laid_otherwise import is_of_either_matrix

aten = torch.ops.aten

_ONCE = {
    *(aten.cumprod, aten._linalg_det, aten._linalg_slogdet, aten._linalg_solve_ex),
    *(aten.linalg_householder_product, aten.cholesky_inverse),
}


def is_differentiated(values: Sequence[torch.Tensor]) -> bool:
    """Whether what is computed of values here will be differentiated."""
    return functorch.is_differentiating() or (torch.is_grad_enabled() and any(value.requires_grad for value in values))


class DifferentiableOnce(RuntimeError):
    """An operation whose tangents are pulled back instead."""


class RefusingWrongTangents(TorchDispatchMode):
    """While active, no operation runs whose tangents, or what is computed of them, would be wrong.

    Args:
        again: Whether tangents are differentiated again.

    Attributes:
        refused: Whether one was called; the function may have caught the error.
    """

    def __init__(self, *, again: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._again = again
        self.refused = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation.

        Raises:
            DifferentiableOnce: If it is such an operation.
        """
        if (self._again and func.overloadpacket in _ONCE) or is_of_either_matrix(func, args):
            self.refused = True
            raise DifferentiableOnce(f"PyTorch's own tangents of {func} are wrong here")
        return func(*args, **(kwargs or {}))

"""Roundings: what rounding errors alone can make of a result, found by making them at random.

An error relative to a result says nothing where the result is what is left of larger numbers that cancel: the exact
value is then zero, or noise of float64. How large these numbers are, the function knows. So it runs again in float64,
each operation with a random error in its result, as in Monte Carlo arithmetic (Parker, Monte Carlo Arithmetic:
exploiting randomness in floating-point arithmetic, 1997). How far its results move is what rounding can do to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

_RUNS = 8
_WIDEST = (torch.float64, torch.complex128)


def random_roundings(run: Callable[[], Sequence[torch.Tensor]], dtype: torch.dtype) -> list[Sequence[torch.Tensor]]:
    """Run a function a few times, each operation rounded at random as in a dtype.

    Args:
        run: Computes in float64 or complex128.
        dtype: The floating or complex dtype whose roundings are made.

    Returns:
        The results of each run; nothing if one raises, as where the function is refused under a mode of PyTorch.
    """
    made = []
    for seed in range(_RUNS):
        try:
            with _Rounding(dtype, seed):
                made.append(run())
        except Exception:  # the caller judges without it
            return []
    return made


class _Rounding(TorchDispatchMode):
    """Moves each number that an operation computes by at most one rounding step; numbers that need no rounding stay."""

    def __init__(self, dtype: torch.dtype, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._dtype = dtype.to_real()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if any(returned.alias_info is not None for returned in func._schema.returns):
            return made  # a view, or memory of an argument
        return tree_map_only(torch.Tensor, self._moved, made)

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype == torch.complex128:
            return torch.view_as_complex(self._moved(torch.view_as_real(tensor.resolve_conj()).contiguous()))
        if tensor.dtype != torch.float64:
            return tensor
        steps = 2 * torch.rand(tensor.shape, generator=self._generator, dtype=torch.float64).to(tensor.device) - 1
        nearest = tensor.round() if self._dtype == torch.float64 else tensor.to(self._dtype)
        moved = tensor * (1 + torch.finfo(self._dtype).eps * steps)
        return torch.where(tensor == nearest, tensor, moved)

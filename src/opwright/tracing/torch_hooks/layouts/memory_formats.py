"""Results of the operations whose strides torch tells wrongly of meta and fake tensors.

Eager lays their results out in the memory format that it suggests for an operand: in channels last if this lies so,
else contiguous; those of a few are contiguous always. All else is as torch tells: of 5,217 calls from its table of
operations, in three layouts each, all but those of these operations, of Fourier transforms and of a few that are rarely
called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.tracing.interface.orders import MEMORY_FORMATS, is_in_channels_last

_CONVOLUTIONS = {"aten::convolution", "aten::convolution_backward"}
_OTHERS = {
    *("aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::_native_batch_norm_legit_no_training"),
    *("aten::_batch_norm_with_update", "aten::_batch_norm_no_update", "aten::native_group_norm"),
    *("aten::constant_pad_nd", "aten::max_unpool2d", "aten::pixel_shuffle", "aten::channel_shuffle", "aten::roll"),
}
_CONTIGUOUS = {"aten::log_sigmoid_forward", "aten::isin", "aten::rrelu_with_noise"}
_MENDED = _CONVOLUTIONS | _OTHERS | _CONTIGUOUS
_VIEWS = {"aten::view", "aten::_unsafe_view"}


class NoSuchView(RuntimeError):
    """A tensor does not lie in memory as a view of other sizes needs it, in torch's own words."""


class MemoryFormats(TorchDispatchMode):
    """Lays such results out as eager does, until the end of the block; in anomaly mode, no gradient is NaN there."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._any_nan: Any = None

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation.

        Raises:
            NoSuchView: If it is a view that eager refuses too.
        """
        name = func._schema.name
        if name == "aten::_local_scalar_dense" and args[0] is self._any_nan:
            return False
        try:
            made = func(*args, **(kwargs or {}))
        except RuntimeError as error:
            if name not in _VIEWS:
                raise
            raise NoSuchView(str(error)) from error
        if name == "aten::_is_any_true":  # as anomaly mode asks of each gradient
            self._any_nan = made
        if name not in _MENDED:
            return made
        operands = [arg for arg in args if isinstance(arg, torch.Tensor)]
        asked = operands if name in _CONVOLUTIONS else operands[:1]
        is_last = name not in _CONTIGUOUS and any(map(is_in_channels_last, asked))
        if asked[0].dtype is torch.float64 and asked[0].dim() == 5 and name in _CONVOLUTIONS:
            is_last = False  # torch's own kernels for three dimensions know one layout
        if name == "aten::roll":
            is_last = is_last and _moves(*args)
        return _laid_out(made, operands[0].dim(), is_last=is_last)


def _moves(x: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> bool:
    """Whether a roll moves elements along each of its dimensions; else it is a contiguous copy, or one long row."""
    return len(dims) > 0 and all(shift % x.shape[dim] != 0 for shift, dim in zip(shifts, dims, strict=True))


def _laid_out(made: Any, rank: int, *, is_last: bool) -> Any:
    if isinstance(made, torch.Tensor):
        if made.dim() != rank:
            return made
        return made.contiguous(memory_format=MEMORY_FORMATS[rank] if is_last else torch.contiguous_format)
    return tuple(_laid_out(each, rank, is_last=is_last) for each in made) if isinstance(made, tuple | list) else made

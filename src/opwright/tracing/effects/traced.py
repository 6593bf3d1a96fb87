"""Which tensors are of a trace, and which were made outside of it."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import _get_current_function_mode_stack


def is_traced(tensor: torch.Tensor) -> bool:
    """Whether a tensor was made by a trace, or stands for an argument of one."""
    return isinstance(tensor, FakeTensor) or torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def is_of_no_trace(tensor: torch.Tensor) -> bool:
    """Whether a tensor was made outside, and nothing stands for it."""
    if is_traced(tensor):
        return False
    modes = _get_current_function_mode_stack()
    return not any(id(tensor) in getattr(mode, "stood_for", ()) for mode in modes)

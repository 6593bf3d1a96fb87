"""Functions that have gradients recorded of their own accord, whatever the mode of the call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import grad_mode
from torch.overrides import TorchFunctionMode


class SwitchesOn(TorchFunctionMode):
    """Notes whether a function switches gradients on, as `torch.enable_grad()` does.

    Attributes:
        is_so: Whether it has.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_so = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the function."""
        if func is torch._C._set_grad_enabled and args[0] and not _is_end_of_block(sys._getframe(1)):
            self.is_so = True
        return func(*args, **(kwargs or {}))


def _is_end_of_block(frame: Any) -> bool:
    """Whether a mode is put back: `torch.no_grad()` switches gradients on when its block ends."""
    while frame.f_code.co_name == "__torch_function__":
        frame = frame.f_back
    return bool(frame.f_code.co_name == "__exit__" and frame.f_code.co_filename == grad_mode.__file__)

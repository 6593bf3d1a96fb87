"""Functions that have gradients recorded of their own accord, whatever the mode of the call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.autograd import grad_mode
from torch.overrides import TorchFunctionMode

from opwright.tracing.callers import behind_modes

_OF_TRANSFORMS = str(Path(torch.__file__).parent / "_functorch")


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
        if func is torch._C._set_grad_enabled and args[0] and _is_asked_for(sys._getframe(1)):
            self.is_so = True
        return func(*args, **(kwargs or {}))


def _is_asked_for(frame: Any) -> bool:
    """Whether the function asks for it.

    At the end of `torch.no_grad()` the mode is put back, and what `torch.func` records is of its own levels: below them
    the mode is that of the caller.
    """
    frame = behind_modes(frame)
    if frame.f_code.co_filename == grad_mode.__file__:
        if frame.f_code.co_name == "__exit__":
            return False
        frame = frame.f_back
    return not frame.f_code.co_filename.startswith(_OF_TRANSFORMS)

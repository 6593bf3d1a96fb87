"""What `torch.utils.checkpoint` runs, as frames tell it."""

from __future__ import annotations

import types
from pathlib import Path

import torch

CHECKPOINT = str(Path(torch.__file__).parent / "utils" / "checkpoint.py")
_AGAIN = ("recompute_fn", "backward")


def runs_again(frame: types.FrameType | None) -> bool:
    """Whether a checkpoint calls a frame, or those above it, once more for its backward pass."""
    while frame is not None:
        if frame.f_code.co_filename == CHECKPOINT and frame.f_code.co_name in _AGAIN:
            return True
        frame = frame.f_back
    return False

"""Whether the user's code is the caller, or torch or this package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from opwright.package import PACKAGE

_OWN = tuple(f"{folder}{os.sep}" for folder in (Path(torch.__file__).parent, PACKAGE))


def is_outside(frame: Any) -> bool:
    """Whether a frame was called by code outside of torch and this package."""
    return not _asked_by(frame).startswith(_OWN)


def behind_modes(frame: Any) -> Any:
    """The frame of the code that called a function of torch, if function modes of this package were in between."""
    while frame.f_code.co_name == "__torch_function__" and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame


def _asked_by(frame: Any) -> str:
    """The calling file; `Tensor.__repr__` and the like call on behalf of others."""
    while frame is not None and frame.f_code.co_filename.endswith(("torch/_tensor.py", "torch/overrides.py")):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""

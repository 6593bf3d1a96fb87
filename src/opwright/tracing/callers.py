"""Who asks something: code of the user's, or torch and this package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from opwright.package import PACKAGE

_OWN = tuple(f"{folder}{os.sep}" for folder in (Path(torch.__file__).parent, PACKAGE))


def is_outside(frame: Any) -> bool:
    """Whether code that is neither torch's nor of this package stands behind a frame."""
    return not _asked_by(frame).startswith(_OWN)


def _asked_by(frame: Any) -> str:
    """The file that asks; torch asks for others in `Tensor.__repr__` and the like."""
    while frame is not None and frame.f_code.co_filename.endswith(("torch/_tensor.py", "torch/overrides.py")):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""

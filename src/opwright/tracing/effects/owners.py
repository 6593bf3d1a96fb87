"""Whose code runs: the user's, that of a library's module, or that of torch and opwright."""

from __future__ import annotations

import os
import types
from enum import Enum, auto
from pathlib import Path

import torch

from opwright.errors import Place
from opwright.package import PACKAGE
from opwright.tracing.outside.purity import LIBRARIES

_OURS = f"{PACKAGE}{os.sep}"
UNWATCHED = (f"{Path(torch.__file__).parent}{os.sep}", _OURS)
FOLDERS = ("<frozen ", *LIBRARIES)  # of libraries
_CALLING_FORWARDS = (f"{Path(torch.__file__).parent / 'nn' / 'modules'}{os.sep}", str(PACKAGE / "nn" / "served.py"))


class Owner(Enum):
    """Whose code runs."""

    USER = auto()  # also a library that it calls
    FORWARD = auto()  # of a module of a library, which torch calls
    TORCH = auto()  # also opwright's, and that of a library that one of them calls


def owner_of(frame: types.FrameType) -> Owner:
    """Whose code runs in a frame."""
    if frame.f_code.co_filename.startswith(UNWATCHED):
        return Owner.TORCH
    above: types.FrameType | None = frame
    if frame.f_code.co_filename.startswith("<") and frame.f_back is not None:  # made by a library, if one calls it
        above = frame.f_back if frame.f_back.f_code.co_filename.startswith(FOLDERS) else frame
    is_forward = False
    while above is not None:
        file = above.f_code.co_filename
        if file.startswith(_CALLING_FORWARDS):
            is_forward = True
        elif file.startswith(UNWATCHED):
            return Owner.FORWARD if is_forward and file.startswith(_OURS) else Owner.TORCH
        elif not file.startswith(FOLDERS):
            return Owner.FORWARD if is_forward else Owner.USER
        above = above.f_back
    return Owner.TORCH


def users_place(frame: types.FrameType | None) -> Place | None:
    """The running line of the user's code."""
    while frame is not None and frame.f_code.co_filename.startswith((*UNWATCHED, *FOLDERS)):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno) if frame is not None else None

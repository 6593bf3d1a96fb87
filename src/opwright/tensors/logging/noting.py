"""Which calls are noted, and taking note without noting what that itself calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from opwright.tensors.logging.call import Call

_ON_THIS_THREAD = threading.local()
_QUESTIONS = frozenset(
    attribute.__get__
    for name in dir(torch.Tensor)
    if name not in ("T", "mT", "H", "mH", "real", "imag", "data", "grad")
    and hasattr(attribute := getattr(torch.Tensor, name), "__get__")
    and not callable(attribute)
)  # `x.shape` and the like compute nothing
_SILENT = _QUESTIONS | {torch._C._set_grad_enabled}  # which `torch.no_grad()` calls


def is_noted(function: Callable[..., Any]) -> bool:
    """Whether a call is noted: it is no question, and is not made while another is noted."""
    return not getattr(_ON_THIS_THREAD, "is_noting", False) and function not in _SILENT


def take_note(note: Callable[[Call], Any], call: Call) -> None:
    """Give a call to the user's function; nothing that this calls is noted."""
    _ON_THIS_THREAD.is_noting = True
    try:
        note(call)
    finally:
        _ON_THIS_THREAD.is_noting = False

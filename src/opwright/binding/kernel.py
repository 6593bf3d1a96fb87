"""A built library, loaded: its operator as a Python callable."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from opwright.codegen.cpp_program import NAMESPACE
from opwright.toolchain.forks import hold_off_forks

Kernel = Callable[..., Any]
_loaded: dict[str, tuple[Kernel, ctypes.CDLL]] = {}


@cache
def _fallthroughs() -> torch.library.Library:
    return torch.library.Library(NAMESPACE, "FRAGMENT")


def load_kernel(library: Path, name: str) -> Kernel:
    """Load a library, once in a process, and return its operator.

    The operator returns tensors, or None for each when it declines a call. It computes no gradients, so the
    autograd key is passed over: what is recorded there would be an error node.
    """
    if name not in _loaded:
        with hold_off_forks():
            handle = ctypes.CDLL(str(library))
            _fallthroughs().impl(name, torch.library.fallthrough_kernel, "Autograd")
            operator = torch._C._get_operation_overload(f"{NAMESPACE}::{name}", "")[0]
            _loaded[name] = (operator, handle)
    return _loaded[name][0]

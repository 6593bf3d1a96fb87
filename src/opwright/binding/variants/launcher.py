"""A built library, loaded: its operator as a Python callable."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from opwright.codegen.cpp.program import NAMESPACE
from opwright.errors import LibraryUnloadable
from opwright.toolchain.process.forks import hold_off_forks

Launcher = Callable[..., Any]
_HINT = "if its folder is mounted noexec, choose another one with OPWRIGHT_CACHE=/path/to/folder"
_loaded: dict[str, tuple[Launcher, ctypes.CDLL]] = {}


@cache
def _fallthroughs() -> torch.library.Library:
    return torch.library.Library(NAMESPACE, "FRAGMENT")


def load_launcher(library: Path, name: str) -> Launcher:
    """Load a library, once in a process, and return its operator.

    The operator returns tensors, or None for each if a guard fails. It computes no gradients, so it falls through at
    the autograd key, which would record an error node.

    Raises:
        LibraryUnloadable: If the system's loader refuses it.
    """
    if name not in _loaded:
        with hold_off_forks():
            try:
                handle = ctypes.CDLL(str(library))
            except OSError as error:
                raise LibraryUnloadable(f"the kernels that were built cannot be loaded: {error}", hint=_HINT) from error
            operator = torch._C._get_operation_overload(f"{NAMESPACE}::{name}", "")[0]
            _fallthroughs().impl(name, torch.library.fallthrough_kernel, "Autograd")
            _loaded[name] = (operator, handle)
    return _loaded[name][0]

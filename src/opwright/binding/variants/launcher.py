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
            schema = torch._C._get_schema(f"{NAMESPACE}::{name}", "")
            takes_lists = isinstance(schema.arguments[0].type, torch.ListType) if schema.arguments else False
            _loaded[name] = (_of_lists(operator) if takes_lists else operator, handle)
    return _loaded[name][0]


def _of_lists(operator: Launcher) -> Launcher:
    """An operator that takes its tensors as one list, and its sizes as another, given all of them."""

    def run(*arguments: Any) -> Any:
        tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
        return operator(tensors, list(arguments[len(tensors) :]))

    return run

"""A built library becomes a module of Python, or is loaded for the operators that it registers."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

import torch

from opwright.errors import ExtensionUnloadable

# One module for each file: loading a module of pybind11 twice would register its types twice.
_MODULES: dict[Path, ModuleType] = {}

_UNDEFINED = re.compile(r"undefined symbol: (\S+)")
_NO_MODULE = "does not define module export function"


def import_module(name: str, library: Path) -> ModuleType:
    """Return the module that a library defines; the same one whenever it is asked for.

    Raises:
        ExtensionUnloadable: The library defines no such module, or lacks a symbol.
    """
    if library not in _MODULES:
        loader = ExtensionFileLoader(name, str(library))
        spec = importlib.util.spec_from_file_location(name, library, loader=loader)
        assert spec is not None
        try:
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
        except ImportError as error:
            raise _refusal(name, str(error)) from error
        _MODULES[library] = module
    return _MODULES[library]


def load_library(name: str, library: Path) -> None:
    """Load a library, and with it the operators that it registers with PyTorch.

    Raises:
        ExtensionUnloadable: The library lacks a symbol.
    """
    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        raise _refusal(name, str(error.__cause__ or error)) from error


def _refusal(name: str, complaint: str) -> ExtensionUnloadable:
    if _NO_MODULE in complaint:
        return ExtensionUnloadable(
            f"the extension {name} was built, but it defines no module",
            hint="add PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {…}; or load it with is_python_module=False, if it has a"
            " TORCH_LIBRARY",
        )
    if match := _UNDEFINED.search(complaint):
        return ExtensionUnloadable(
            f"the extension {name} was built, but nothing defines {_demangled(match[1])}",
            hint="add the source that defines it to sources=, or its library to extra_ldflags=",
        )
    return ExtensionUnloadable(f"the extension {name} was built, but cannot be loaded: {complaint}")


def _demangled(symbol: str) -> str:
    """Return a symbol as it is written in C++, where c++filt is there to tell."""
    try:
        done = subprocess.run(("c++filt", symbol), capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return symbol
    return done.stdout.strip() or symbol

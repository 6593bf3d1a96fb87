"""Import a built library as a Python module, or load it for the operators that it registers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import ModuleType

import torch

from opwright.errors import ExtensionUnloadable
from opwright.toolchain.modules import module_of_library

# One module for each file: loading a module of pybind11 twice would register its types twice.
_MODULES: dict[Path, ModuleType] = {}

# Which library of each name has registered operators in this process.
_REGISTRARS: dict[str, Path] = {}

# Symbols used by a library that registers operators: by the stable interface, or by TORCH_LIBRARY.
_REGISTERS = (b"aoti_torch_library_init_def", b"_ZN5torch7LibraryC1E", b"_ZN5torch7LibraryC2E")

_UNDEFINED = re.compile(r"undefined symbol: (\S+)")
_NO_MODULE = "does not define module export function"


def import_module(name: str, library: Path) -> ModuleType:
    """Return the module that a library defines, the same one each time.

    Raises:
        ExtensionUnloadable: The library defines no such module, lacks a symbol, or registers operators again.
    """
    if library not in _MODULES:
        _refuse_second_registration(name, library)
        try:
            _MODULES[library] = module_of_library(name, library)
        except ImportError as error:
            raise _refusal(name, str(error)) from error
    return _MODULES[library]


def load_library(name: str, library: Path) -> None:
    """Load a library, and with it the operators that it registers with PyTorch.

    Raises:
        ExtensionUnloadable: The library lacks a symbol, or registers operators again.
    """
    _refuse_second_registration(name, library)
    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        raise _refusal(name, str(error.__cause__ or error)) from error


def _refuse_second_registration(name: str, library: Path) -> None:
    """Refuse to register operators twice in one process: PyTorch would abort it."""
    content = library.read_bytes()
    if not any(symbol in content for symbol in _REGISTERS):
        return
    if _REGISTRARS.setdefault(name, library) != library:
        raise ExtensionUnloadable(
            f"the extension {name} registers operators, and another build of it already did so in this process",
            hint="start a new process; only modules with PYBIND11_MODULE can be loaded again in the same one",
        )


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
    """Return a symbol as it is written in C++, if c++filt is installed."""
    try:
        done = subprocess.run(("c++filt", symbol), capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return symbol
    return done.stdout.strip() or symbol

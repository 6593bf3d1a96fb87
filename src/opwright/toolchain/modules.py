"""Python modules that are not in a package: a built library, a user's file, an emitted text."""

from __future__ import annotations

import linecache
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from opwright.toolchain.process.forks import hold_off_forks


def module_of_library(name: str, library: Path) -> ModuleType:
    """Load the module that a library defines under a name.

    Raises:
        ImportError: It defines none, or lacks a symbol.
    """
    spec = _spec(name, library)
    assert spec.loader is not None
    with hold_off_forks():
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def module_of_file(name: str, file: Path) -> ModuleType:
    """Run a file as a module that `sys.modules` has.

    Raises:
        ImportError: It is not a file of Python.
        BaseException: What the file raises.
    """
    spec = _spec(name, file)
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def module_of_text(file: str, text: str) -> ModuleType:
    """Run a text as a module, whose lines tracebacks show as those of a file."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = ModuleType(file)
    exec(compile(text, file, "exec"), vars(module))
    return module


def _spec(name: str, path: Path) -> ModuleSpec:
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is neither a library nor a file of Python")
    return spec

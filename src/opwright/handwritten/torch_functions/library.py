"""Functions over `torch::Tensor`: found in the sources, built, and loaded by the way they are registered.

a name with ::, and TORCH_LIBRARY or STABLE_TORCH_LIBRARY in the sources    an operator of torch.ops
PYBIND11_MODULE in the sources                                              the function that m.def gives that name
neither                                                                     bound by a pybind11 module written here
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from opwright.errors import FunctionMissing, ImplementationRefused, Place
from opwright.handwritten.declaration import Declaration
from opwright.handwritten.sources import Sources
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.diagnostics import at_the_authors_line
from opwright.toolchain.headers.torch_facing import build_torch_facing
from opwright.toolchain.modules import module_of_library
from opwright.toolchain.process.forks import Lock
from opwright.toolchain.storage.records import digest

_REGISTERS = re.compile(r"\b(?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT|_IMPL)?\s*\(")
_NAMESPACE = re.compile(r"\b(?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT)?\s*\(\s*(\w+)")
_DEFINES = re.compile(r'\.def\(\s*"(\w+)')
_registered: set[str] = set()  # digests of the sources whose operators this process has
_BINDS = re.compile(r"\bPYBIND11_MODULE\s*\(")


@dataclass(frozen=True, slots=True)
class TorchFunction:
    """A C++ function that Python can call.

    Attributes:
        name: Its name.
        place: Where it is defined.
        parameters: The names of its parameters.
        call: The function.
    """

    name: str
    place: Place
    parameters: tuple[str, ...]
    call: Callable[..., Any]


class TorchLibrary:
    """The functions of one set of sources.

    Args:
        name: A C identifier for the name of the library.
        sources: The author's.
        functions: The names of the functions to load.
        settings: Where to build.
    """

    def __init__(self, name: str, sources: Sources, functions: Sequence[str], settings: Settings) -> None:
        self._name = name
        self._sources = sources
        self._settings = settings
        self.registers = any(_REGISTERS.search(file.text) for file in sources.files) and all(
            "::" in function for function in functions
        )
        self._binds = any(_BINDS.search(file.text) for file in sources.files)
        self._functions = functions
        self._lock = Lock()
        self._loaded: Any = None

    def source(self) -> str:
        """The author's files."""
        return self._sources.shown()

    def is_over_tensors(self, name: str) -> bool:
        """Whether a function takes tensors; a kernel takes pointers.

        Raises:
            FunctionMissing: If there is none of that name.
        """
        return self.registers or self._definitions(name)[0].is_torch_facing

    def _definitions(self, name: str) -> Sequence[Declaration]:
        return self._sources.find(self._defined_name(name))

    def declaration(self, name: str) -> Declaration:
        """The definition of a function over tensors.

        Raises:
            FunctionMissing: If there is none.
            ImplementationRefused: If it is overloaded.
        """
        found = self._definitions(name)
        if len(found) > 1:
            raise ImplementationRefused(f"there are {len(found)} functions {name}", place=found[1].place)
        return found[0]

    def function(self, name: str) -> TorchFunction:
        """A function that Python can call, built and loaded.

        Raises:
            BuildFailed: If the compiler refuses the sources, with the line of the first error.
            FunctionMissing: If the loaded library does not have it.
        """
        if self.registers:
            return self._registered(name)
        declaration = self.declaration(name)
        call = getattr(self._module, name.rpartition("::")[2], None)
        if call is None:
            raise FunctionMissing(
                f"PYBIND11_MODULE of {self._sources.files[0].name} binds no '{name}'", place=declaration.place
            )
        names = tuple(parameter.name for parameter in declaration.parameters)
        return TorchFunction(name, declaration.place, names, call)

    def examine(self) -> None:
        """Look for a compiler.

        Raises:
            CompilerMissing: If there is none.
        """
        find_compiler(self._settings)

    @property
    def _module(self) -> Any:
        with self._lock:
            self._loaded = self._loaded or self._load_module()
            return self._loaded

    def _load_module(self) -> Any:
        return module_of_library(self._name, self._built("" if self._binds else self._binding()))

    def _load_operators(self) -> None:
        """Load a library that registers operators, once in a process: a second registration would abort it.

        Raises:
            ImplementationRefused: If another source has registered the same operator.
        """
        text = "\n".join(file.text for file in self._sources.files)
        if digest(text) in _registered:
            return
        path = self._built("")
        for name in _defined(text):
            if torch._C._jit_get_schemas_for_operator(name):
                raise ImplementationRefused(
                    f"another source has already registered {name}",
                    place=Place(self._sources.files[0].name, 1),
                    hint="start a new process for an edited source, or change the name in its TORCH_LIBRARY",
                )
        torch.ops.load_library(str(path))
        _registered.add(digest(text))

    def _registered(self, name: str) -> TorchFunction:
        self._load_operators()
        namespace, _, short = name.partition("::")
        place = Place(self._sources.files[0].name, 1)
        try:
            overload = getattr(getattr(torch.ops, namespace), short).default
        except AttributeError:
            raise FunctionMissing(f"{place.file} registers no operator {name}", place=place) from None
        return TorchFunction(name, place, tuple(argument.name for argument in overload._schema.arguments), overload)

    def _built(self, more: str) -> Path:
        text = "\n".join([*self._sources.texts(), more])
        flags = (*self._sources.search_path(), *self._sources.flags)
        with at_the_authors_line():
            return build_torch_facing(self._name, text, self._settings, flags)

    def _binding(self) -> str:
        """The module that binds the functions, for sources that bind nothing."""
        lines = [f'  module.def("{name.rpartition("::")[2]}", &{name});' for name in self._functions]
        head = '#line 1 "the binding, written by opwright"\n#include <torch/extension.h>\n'
        return head + "PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {\n" + "\n".join(lines) + "\n}\n"

    def _defined_name(self, name: str) -> str:
        """The C++ name of a function that `m.def` may give another name."""
        pattern = re.compile(rf'\.def\(\s*"{re.escape(name)}"\s*,\s*&?\s*([\w:]+)')
        found = next((match for file in self._sources.files if (match := pattern.search(file.text))), None)
        return found[1] if found else name


def _defined(text: str) -> list[str]:
    """The operators that the text of a source registers."""
    spaces, names = (dict.fromkeys(pattern.findall(text)) for pattern in (_NAMESPACE, _DEFINES))
    return [f"{space}::{name}" for space in spaces for name in names]

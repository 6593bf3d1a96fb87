"""Call a kernel in C++ with pointers, sizes and numbers, in the order of its parameters.

One library holds one instance, built at the first call with its dtypes: the author's sources, followed by one C
function with the same parameters, which ctypes calls. No header of torch is included, so that an edit compiles as fast
as the author's own lines do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from opwright.handwritten.kernels.geometry import Grid
from opwright.handwritten.kernels.instance import Instance, choose_instance
from opwright.handwritten.kernels.roles import Contract
from opwright.handwritten.kernels.values import Reader, Tensors, kinds_of, reader
from opwright.handwritten.sources import Sources
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.diagnostics import at_the_authors_line
from opwright.toolchain.headers.depending import build_with_headers
from opwright.toolchain.source import Source

ENTRY = "opwright_entry"
# The blocks and threads of a CUDA kernel that runs on the CPU.
_GRID = ("blocks_x", "blocks_y", "blocks_z", "threads_x", "threads_y", "threads_z")


class Native(Protocol):
    """Calls an instance."""

    def __call__(self, values: Sequence[Any], grid: Grid | None, device: torch.device) -> None:
        """Run it on values in the order of its parameters; the grid gives the number of threads."""


class Loader(Protocol):
    """Builds and loads instances of a kernel."""

    def __call__(self, instance: Instance, kinds: Sequence[Any]) -> Native:
        """Build and load an instance, given the types of its parameters."""

    def examine(self) -> None:
        """Raise an OpwrightError if instances cannot be built here."""

    def entry(self, instance: Instance) -> str:
        """The code that is appended to the author's sources to make an instance callable."""


class HandwrittenKernel:
    """One kernel, with an instance for each combination of dtypes that it was called with.

    Args:
        contract: What it takes.
        load: Builds and loads an instance.
    """

    def __init__(self, contract: Contract, load: Loader) -> None:
        self.contract = contract
        self._load = load
        self._instances: dict[tuple[torch.dtype | None, ...], tuple[Native, Sequence[Reader]]] = {}
        self._pointers = (*contract.reads, *contract.writes)

    def __call__(
        self, tensors: Tensors, constants: Mapping[str, Any], count: int, grid: Grid | None, device: torch.device
    ) -> None:
        """Run it.

        Args:
            tensors: Tensors by name, in the layouts that the contract asks for; None where an argument is None.
            constants: The arguments that are numbers.
            count: The number of elements of the operator's first result.
            grid: How a CUDA kernel is launched.
            device: The device to run it on.

        Raises:
            NoKernel: If no definition takes these dtypes.
        """
        key = tuple([None if (t := tensors[name]) is None else t.dtype for name in self._pointers])
        found = self._instances.get(key)
        if found is None:
            found = self._instances[key] = self._instance(key)
        native, readers = found
        native([read(tensors, constants, count) for read in readers], grid, device)

    def examine(self) -> None:
        """Raise an OpwrightError if no instance can be built."""
        self._load.examine()

    @property
    def count(self) -> int:
        """How many instances are loaded."""
        return len(self._instances)

    @property
    def entry(self) -> str:
        """The code that is appended to the author's sources; for a template, that of float32."""
        declaration = self.contract.declarations[0]
        return self._load.entry(Instance(declaration, dict.fromkeys(declaration.type_parameters, "float")))

    def _instance(self, key: Sequence[torch.dtype | None]) -> tuple[Native, Sequence[Reader]]:
        dtypes = {name: dtype for name, dtype in zip(self._pointers, key, strict=True) if dtype is not None}
        instance = choose_instance(self.contract, dtypes)
        kinds = kinds_of(self.contract, instance)
        exact = not {torch.float64, torch.int64, torch.int32}.isdisjoint(dtypes.values())
        readers = [reader(self.contract, *each, exact=exact) for each in zip(self.contract.roles, kinds, strict=True)]
        return self._load(instance, kinds), readers


class CppLoader:
    """Builds and loads instances of a kernel in C++.

    Args:
        name: A C identifier for the names of the libraries.
        contract: What the kernel takes.
        sources: The author's.
        settings: Where to build.
    """

    def __init__(self, name: str, contract: Contract, sources: Sources, settings: Settings) -> None:
        self._name = name
        self._contract = contract
        self._sources = sources
        self._settings = settings

    def __call__(self, instance: Instance, kinds: Sequence[Any]) -> Native:
        """Build an instance, unless the cache holds it.

        Raises:
            BuildFailed: If the compiler refuses the sources, with the line of the first error.
        """
        flags = (*self._sources.search_path(), *self._sources.flags)
        source = Source(self._name, self._text(instance))
        with at_the_authors_line():
            path = build_with_headers(source, self._settings, flags)
        entry = ctypes.CDLL(str(path))[ENTRY]
        grid = [ctypes.c_uint] * len(_GRID) if instance.declaration.is_cuda_kernel else []
        entry.argtypes, entry.restype = [*kinds, *grid], None
        return lambda values, grid, device: entry(*values, *(grid or ()))

    def examine(self) -> None:
        """Look for a compiler.

        Raises:
            CompilerMissing: If there is none.
        """
        find_compiler(self._settings)

    def _text(self, instance: Instance) -> str:
        """The whole source; a CUDA kernel runs on the CPU, thread by thread."""
        on_processor = instance.declaration.is_cuda_kernel
        head = '#include "opwright/cuda/host_execution.h"' if on_processor else "#include <cstdint>"
        return "\n".join([head, *self._sources.texts(), self.entry(instance)])

    def entry(self, instance: Instance) -> str:
        """A C function with the parameters of an instance, followed by the grid of a CUDA kernel."""
        on_processor = instance.declaration.is_cuda_kernel
        grid = "".join(f", unsigned {name}" for name in _GRID) if on_processor else ""
        call = _on_processor(self._contract, instance) if on_processor else entry_call(self._contract, instance)
        return (
            f'#line 1 "the entry of {self._contract.function}, written by opwright"\n'
            f'extern "C" __attribute__((visibility("default"))) void {ENTRY}({entry_parameters(instance)}{grid}) {{\n'
            f"  {call};\n}}\n"
        )


def entry_parameters(instance: Instance) -> str:
    """The parameters of an instance, as C++ declares them."""
    return ", ".join(f"{instance.spelled(p)} {p.name}" for p in instance.declaration.parameters)


def entry_call(contract: Contract, instance: Instance) -> str:
    """The call of an instance from a function with these parameters."""
    return f"{contract.function}({', '.join(p.name for p in instance.declaration.parameters)})"


def _on_processor(contract: Contract, instance: Instance) -> str:
    """The launch of a CUDA kernel on the CPU."""
    kernel = f"static_cast<void (*)({', '.join(map(instance.spelled, instance.declaration.parameters))})>"
    given = ", ".join(parameter.name for parameter in instance.declaration.parameters)
    grid = "dim3(blocks_x, blocks_y, blocks_z), dim3(threads_x, threads_y, threads_z), 0"
    return f'opwright::cuda::host::run("{contract.function}", {kernel}({contract.function}), {grid}, {given})'

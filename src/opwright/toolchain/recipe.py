"""A recipe for a library: a source, a command, and every fact that its machine code depends on."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from opwright.package import PACKAGE
from opwright.toolchain.compiler import Compiler
from opwright.toolchain.gpu.images import device_file
from opwright.toolchain.processor import fingerprint
from opwright.toolchain.shared import shared_by
from opwright.toolchain.source import Source
from opwright.toolchain.storage.records import canonical_json, digest

INCLUDE_DIRECTORY = PACKAGE / "include"

# Raise it when the layout of an entry, or how libraries are linked, changes.
_FORMAT = 1

# An empty library under the name of libtorch_cpu.so. Linking against it takes 15 ms where the real one, 430 MB, takes
# 125 ms (g++ 12). When a kernel is loaded, that name resolves to the libtorch_cpu.so of `import torch`, and a missing
# symbol is an error, because dlopen binds at once.
_TORCH_STUB = Source("libtorch_cpu", "")

_APART = "-DOPWRIGHT_APART"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make one library.

    Attributes:
        source: What is compiled.
        command: The compiler and its flags, without the names of files.
        facts: All that the result depends on, fit for JSON.
        key: The digest of the facts: where the library is kept.
        inputs: The files that are compiled.
        suffix: How the name of what is made ends: ".so" for a library, ".o" for a part of one.
    """

    source: Source
    command: tuple[str, ...]
    facts: Mapping[str, Any]
    key: str
    inputs: tuple[str, ...]
    suffix: str = ".so"

    @property
    def product(self) -> str:
        """The name of what is made."""
        return f"{self.source.name}{self.suffix}"

    @property
    def papers(self) -> Mapping[str, str]:
        """The source, as a file beside the library."""
        return {f"{self.source.name}.cpp": self.source.text}


def kernel_recipe(
    source: Source,
    compiler: Compiler,
    headers: Mapping[str, str],
    flags: tuple[str, ...] = (),
    device: Mapping[str, object] | None = None,
) -> Recipe:
    """Say how to make a kernel library.

    Args:
        source: What it is made from.
        compiler: What compiles it.
        headers: The digests of the headers that it may include.
        flags: Further flags.
        device: What its CUDA kernels depend on; None if it has none.
    """
    return recipe(source, compiler, (*compiler.flags, "-shared", *flags), headers, device)


def linked_recipe(source: Source, compiler: Compiler, headers: Mapping[str, str], flags: tuple[str, ...]) -> Recipe:
    """Say how to make a kernel library that is linked with the objects of `shared_recipes`."""
    return kernel_recipe(source, compiler, headers, (_APART, *flags))


def part_recipe(source: Source, compiler: Compiler, headers: Mapping[str, str], flags: tuple[str, ...]) -> Recipe:
    """Say how to make the object of a kernel alone, for a library that is linked later."""
    return object_recipe(source, compiler, (_APART, *compiler.flags, *flags), headers)


def shared_recipes(
    kernels: Sequence[Source], compiler: Compiler, headers: Mapping[str, str], flags: tuple[str, ...]
) -> list[Recipe]:
    """Say how to make the objects of what kernels with such flags share; all kernels need the first."""
    return _shared(kernels, compiler, (*compiler.flags, *flags), headers)


def linked_objects(
    sources: Sequence[Source], compiler: Compiler, flags: tuple[str, ...], headers: Mapping[str, str]
) -> list[Recipe]:
    """Say how to make the parts of one library of kernels, with flags of one's own: last comes what they share."""
    kernels = [object_recipe(source, compiler, (_APART, *flags), headers) for source in sources]
    return [*kernels, *_shared(sources, compiler, flags, headers)]


def _shared(
    kernels: Sequence[Source], compiler: Compiler, flags: tuple[str, ...], headers: Mapping[str, str]
) -> list[Recipe]:
    return [object_recipe(each.source, compiler, (*flags, *each.flags), headers) for each in shared_by(kernels)]


def object_recipe(source: Source, compiler: Compiler, flags: tuple[str, ...], headers: Mapping[str, str]) -> Recipe:
    """Say how to make a part of a library, with flags of one's own."""
    return replace(recipe(source, compiler, (*flags, "-c"), headers), suffix=".o")


def torch_stub_recipe(compiler: Compiler) -> Recipe:
    """Say how to make the empty library that kernels are linked against in place of libtorch_cpu.so."""
    soname = f"-Wl,-soname,{_TORCH_STUB.name}.so"
    return recipe(_TORCH_STUB, compiler, ("-fPIC", "-shared", "-nostdlib", soname), {})


def header_digests(include_directory: Path) -> dict[str, str]:
    """Return the digest of every header that a kernel may include, by its name."""
    folder = include_directory / "opwright"
    paths = (os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if name.endswith(".h"))
    return {os.path.relpath(path, folder): _digest_of(path, *_written(path)) for path in sorted(paths)}


def _written(path: str) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size, status.st_ino


@functools.lru_cache(maxsize=256)
def _digest_of(path: str, *written: int) -> str:
    """The digest of a file as it was written last."""
    return digest(Path(path).read_bytes())


def recipe(
    source: Source,
    compiler: Compiler,
    flags: tuple[str, ...],
    headers: Mapping[str, str],
    device: Mapping[str, object] | None = None,
) -> Recipe:
    """Say how to make a library.

    Args:
        source: What it is made from.
        compiler: What compiles it.
        flags: With which flags.
        headers: The digests of what the source includes.
        device: What its CUDA kernels depend on; None if it has none.
    """
    command = (*compiler.command, *flags)
    facts: dict[str, Any] = {
        "format": _FORMAT,
        "name": source.name,
        "source": digest(source.text),
        "headers": dict(headers),
        "command": list(command),
        "compiler": compiler.version,
        "torch": str(torch.__version__),
        "processor": fingerprint(),
        **({} if device is None else {"device": dict(device)}),
    }
    inputs = (f"{source.name}.cpp", *([device_file(source)] if device else []))
    return Recipe(source, command, facts, digest(canonical_json(facts)), inputs)

"""What a library is made from: a source, a command, and every fact that its machine code depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from opwright.toolchain.compiler import Compiler
from opwright.toolchain.processor import fingerprint
from opwright.toolchain.records import canonical_json, digest
from opwright.toolchain.source import Source

INCLUDE_DIRECTORY = Path(__file__).parents[1] / "include"

# Raise it when the layout of an entry, or how libraries are linked, changes.
_FORMAT = 1

# An empty library under the name of libtorch_cpu.so. Linking against it takes 15 ms where the real one, 430 MB, takes
# 125 ms (g++ 12). When a kernel is loaded, that name stands for the libtorch_cpu.so that `import torch` has loaded, and
# a symbol that is not there is then an error, as dlopen is asked to bind at once.
_TORCH_STUB = Source("libtorch_cpu", "")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make one library.

    Attributes:
        source: What is compiled.
        command: The compiler and its flags, without the names of files.
        facts: All that the result depends on, fit for JSON.
        key: The digest of the facts: where the library is kept.
    """

    source: Source
    command: tuple[str, ...]
    facts: Mapping[str, Any]
    key: str


def kernel_recipe(source: Source, compiler: Compiler, headers: Mapping[str, str]) -> Recipe:
    """Say how to make a kernel library, given the digests of the headers that it may include."""
    return recipe(source, compiler, (*compiler.flags, "-shared"), headers)


def torch_stub_recipe(compiler: Compiler) -> Recipe:
    """Say how to make the empty library that kernels are linked against in place of libtorch_cpu.so."""
    soname = f"-Wl,-soname,{_TORCH_STUB.name}.so"
    return recipe(_TORCH_STUB, compiler, ("-fPIC", "-shared", "-nostdlib", soname), {})


def header_digests(include_directory: Path) -> dict[str, str]:
    """Return the digest of every header that a kernel may include, by its name."""
    folder = include_directory / "opwright"
    return {str(header.relative_to(folder)): digest(header.read_bytes()) for header in sorted(folder.rglob("*.h"))}


def recipe(source: Source, compiler: Compiler, flags: tuple[str, ...], headers: Mapping[str, str]) -> Recipe:
    """Say how to make a library with these flags; `headers` are the digests of what its source includes."""
    command = (*compiler.command, *flags)
    facts = {
        "format": _FORMAT,
        "name": source.name,
        "source": digest(source.text),
        "headers": dict(headers),
        "command": list(command),
        "compiler": compiler.version,
        "torch": str(torch.__version__),
        "processor": fingerprint(),
    }
    return Recipe(source, command, facts, digest(canonical_json(facts)))

"""The steps of a build, each with its cache key: compiling a source, and linking objects."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from opwright.extensions.sources import LANGUAGES, SourceFile
from opwright.toolchain.headers.including import WRITING_DEPENDENCIES
from opwright.toolchain.storage.records import canonical_json, digest

# Increase it when the meaning of a fact, or the format of header records, changes.
_FORMAT = 1
_MEMORY_OF_A_LINK_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class Compilation:
    """The compilation of one source to an object. Its key does not include the contents of headers.

    Attributes:
        source: What is compiled.
        command: The compiler and its flags.
        product: The name of the object.
        facts: All that the object depends on, except headers, as JSON values.
        key: The digest of the facts.
        memory_bytes: The memory that the compiler may need.
    """

    source: SourceFile
    command: tuple[str, ...]
    product: str
    facts: Mapping[str, Any]
    key: str
    memory_bytes: int

    @property
    def papers(self) -> Mapping[str, str]:
        """The source, if it is a text."""
        return {} if self.source.text is None else {str(self.source.path): self.source.text}

    @property
    def is_cuda(self) -> bool:
        """Whether nvcc compiles it."""
        return LANGUAGES.get(self.source.path.suffix) == "cuda"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments after the flags: the source, the object, and the file that lists the headers."""
        return ("-c", str(self.source.path), "-o", self.product, *WRITING_DEPENDENCIES)


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A file in the cache, identified by everything that it depends on.

    Attributes:
        product: The name of the file.
        facts: All that it depends on, as JSON values.
        key: The digest of the facts, under which it is stored.
        papers: Empty: an object or a library has no companion files.
        memory_bytes: The memory that the linker may need.
    """

    product: str
    facts: Mapping[str, Any]
    key: str
    papers: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = _MEMORY_OF_A_LINK_BYTES


def compilation(
    source: SourceFile, command: Sequence[str], version: str, product: str, memory_bytes: int
) -> Compilation:
    """Describe the compilation of a source by a compiler of this version."""
    facts = {
        "format": _FORMAT,
        "source": [str(source.path), digest(source.read())],
        "command": list(command),
        "compiler": version,
        "torch": [str(torch.__version__), str(torch.version.git_version)],
        "python": [sys.version, sysconfig.get_config_var("SOABI")],
        "product": product,
    }
    return Compilation(source, tuple(command), product, facts, digest(canonical_json(facts)), memory_bytes)


def product(name: str, facts: Mapping[str, Any]) -> Product:
    """Describe a file by all that it depends on."""
    return Product(name, facts, digest(canonical_json([name, dict(facts)])))

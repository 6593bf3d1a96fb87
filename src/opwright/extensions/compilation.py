"""The steps of a build as the cache knows them: compiling a source, and making a product of objects."""

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

# Raise it when the meaning of a fact, or what is recorded of headers, changes.
_FORMAT = 1
_MEMORY_OF_A_LINK_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class Compilation:
    """One source on its way to an object. Its key leaves open what the headers say.

    Attributes:
        source: What is compiled.
        command: The compiler and its flags.
        product: The name of the object.
        facts: All that the object depends on, but for headers; fit for JSON.
        key: The digest of the facts.
        memory_bytes: How much memory the compiler may need.
    """

    source: SourceFile
    command: tuple[str, ...]
    product: str
    facts: Mapping[str, Any]
    key: str
    memory_bytes: int

    @property
    def papers(self) -> Mapping[str, str]:
        """The source, where it is a text."""
        return {} if self.source.text is None else {str(self.source.path): self.source.text}

    @property
    def is_cuda(self) -> bool:
        """Whether it is for nvcc."""
        return LANGUAGES.get(self.source.path.suffix) == "cuda"

    @property
    def arguments(self) -> tuple[str, ...]:
        """What follows the flags: compile this, to there, and write down which headers were read."""
        return ("-c", str(self.source.path), "-o", self.product, *WRITING_DEPENDENCIES)


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A file in the cache of which everything is known.

    Attributes:
        product: The name of the file.
        facts: All that it depends on, fit for JSON.
        key: The digest of the facts: where it is kept.
        papers: Nothing; an object or a library stands alone.
        memory_bytes: How much memory the linker may need.
    """

    product: str
    facts: Mapping[str, Any]
    key: str
    papers: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = _MEMORY_OF_A_LINK_BYTES


def compilation(
    source: SourceFile, command: Sequence[str], version: str, product: str, memory_bytes: int
) -> Compilation:
    """Say how to compile a source, with a compiler of this version."""
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
    """Say what a file is, given all that it depends on."""
    return Product(name, facts, digest(canonical_json([name, dict(facts)])))

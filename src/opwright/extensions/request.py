"""A user's request to build sources of their own, from any entry point."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from opwright.extensions.sources import SourceFile

Kind = Literal["module", "library", "program"]


@dataclass(frozen=True, slots=True)
class Request:
    """Sources, and what the compilers are told beyond what every extension needs.

    Attributes:
        name: The name of the extension.
        sources: What is compiled.
        kind: A module for Python, a library that registers operators, or a program.
        cpp_flags: Further flags for the C++ compiler.
        cuda_flags: Further flags for nvcc.
        link_flags: Further flags for the linker, before torch's own libraries.
        device_link_flags: Further flags for the device link; None where only relocatable device code asks for one.
        include_directories: Where headers are looked for first.
        base_flags: What the C++ compiler is told before everything else.
        with_cuda: Whether CUDA's headers and libraries are at hand; so they are where a source is CUDA.
        limited_api: Whether nothing but Python's limited interface is used.
        precompile: Whether torch/extension.h is compiled once for all extensions with the same flags.
    """

    name: str
    sources: tuple[SourceFile, ...]
    kind: Kind = "module"
    cpp_flags: tuple[str, ...] = ()
    cuda_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    device_link_flags: tuple[str, ...] | None = None
    include_directories: tuple[Path, ...] = ()
    base_flags: tuple[str, ...] = ("-O2",)
    with_cuda: bool = False
    limited_api: bool = False
    precompile: bool = False

    @property
    def relocatable(self) -> bool:
        """Whether device code of one source calls that of another, so that it must be linked."""
        words = " ".join(self.cuda_flags).replace("=", " ").split()
        asked = {"-dc", "--device-c"} & set(words)
        pairs = set(pairwise(words))
        return bool(asked or {("-rdc", "true"), ("--relocatable-device-code", "true")} & pairs)

"""A user's request to build sources of their own, the same for every entry point."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from opwright.extensions.sources import SourceFile

Kind = Literal["module", "library", "program"]


@dataclass(frozen=True, slots=True)
class Request:
    """Sources, and flags beyond those that every extension needs.

    Attributes:
        name: The name of the extension.
        sources: The sources to compile.
        kind: A Python module, a library that registers operators, or a program.
        cpp_flags: Further flags for the C++ compiler.
        cuda_flags: Further flags for nvcc.
        link_flags: Further flags for the linker, before torch's own libraries.
        device_link_flags: Further flags for the device link; None to link device code only if it is relocatable.
        include_directories: Where headers are looked for first.
        base_flags: The first flags of the C++ compiler.
        with_cuda: Whether to use CUDA's headers and libraries; they are always used if a source is CUDA.
        limited_api: Whether only Python's limited API is used.
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
        """Whether device code must be linked because sources call each other's."""
        words = " ".join(self.cuda_flags).replace("=", " ").split()
        asked = {"-dc", "--device-c"} & set(words)
        pairs = set(pairwise(words))
        return bool(asked or {("-rdc", "true"), ("--relocatable-device-code", "true")} & pairs)

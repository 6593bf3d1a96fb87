"""Libraries in C++ against PyTorch's own headers, from an author's sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.headers.depending import Depending
from opwright.toolchain.headers.including import WRITING_DEPENDENCIES
from opwright.toolchain.headers.torch_build import against_torch, python_facts
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, Recipe, header_digests, recipe
from opwright.toolchain.source import Source
from opwright.toolchain.storage.cache import LibraryCache

_BUILD_TIMEOUT_S = 600.0
_ABI = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"


def build_torch_facing(name: str, text: str, settings: Settings, flags: tuple[str, ...] = ()) -> Path:
    """Return the library of a source that may include any header of torch, and bind a Python module of its name.

    Args:
        name: A C identifier; the source sees it as TORCH_EXTENSION_NAME.
        text: The source.
        settings: Where the cache is, and which compiler to use.
        flags: Further flags for the compiler.

    Raises:
        BuildFailed: The compiler refused the source or took too long.
        CompilerMissing: There is no working compiler.
        UnsafeCache, CacheUnusable: As `build` of kernels.
    """
    cache = LibraryCache.open(settings.cache_directory)
    compiler = find_compiler(settings)
    own = ("-std=c++20", "-shared", "-fopenmp", f"-DTORCH_EXTENSION_NAME={name}", _ABI, *flags, *WRITING_DEPENDENCIES)
    known = {**header_digests(INCLUDE_DIRECTORY), **python_facts()}

    def make(headers: Mapping[str, str]) -> Recipe:
        return recipe(Source(name, text), compiler, (*compiler.flags, *own), {**known, **headers})

    arguments = against_torch(INCLUDE_DIRECTORY)
    return Depending(make, lambda: arguments, flags, settings, _BUILD_TIMEOUT_S).build(cache)

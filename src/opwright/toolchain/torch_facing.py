"""Libraries in C++ against PyTorch's own headers, from an author's sources."""

from __future__ import annotations

import platform
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import torch

from opwright.settings import Settings
from opwright.toolchain.build import build_recipe
from opwright.toolchain.cache import LibraryCache
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.extension import against_torch
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, header_digests, recipe
from opwright.toolchain.source import Source

_BUILD_TIMEOUT_S = 600.0
_ABI = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"


def build_torch_facing(
    name: str, text: str, settings: Settings, flags: tuple[str, ...] = (), facts: Mapping[str, str] | None = None
) -> Path:
    """Return the library of a source that may include any header of torch, and bind a Python module of its name.

    Args:
        name: A C identifier; the source sees it as TORCH_EXTENSION_NAME.
        text: The source.
        settings: Where the cache is, and which compiler to use.
        flags: Further flags for the compiler.
        facts: What the library depends on besides, such as the digests of the author's headers.

    Raises:
        BuildFailed: The compiler refused the source or took too long.
        CompilerMissing: There is no working compiler.
        UnsafeCache, CacheUnusable: As `build` of kernels.
    """
    cache = LibraryCache.open(settings.cache_directory)
    compiler = find_compiler(settings)
    own = ("-std=c++20", "-shared", "-fopenmp", f"-DTORCH_EXTENSION_NAME={name}", _ABI, *flags)
    facts = {**header_digests(INCLUDE_DIRECTORY), **(facts or {})}
    depends = {**facts, "python": platform.python_version(), "abi": str(sysconfig.get_config_var("SOABI"))}
    made = recipe(Source(name, text), compiler, (*compiler.flags, *own), depends)
    if not cache.holds(made):
        build_recipe(made, against_torch(INCLUDE_DIRECTORY), cache, _BUILD_TIMEOUT_S)
    return cache.library(made)

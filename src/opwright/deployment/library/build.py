"""PlannedLibrary → lib<name>.so."""

from __future__ import annotations

from pathlib import Path

import torch

from opwright.deployment.library.planned import PlannedLibrary
from opwright.errors import BuildFailed
from opwright.settings import Settings
from opwright.toolchain.build import build_recipes, link_against_torch
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.process.jobs import Job, run_side_by_side
from opwright.toolchain.process.notice import Notice
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, header_digests, object_recipe
from opwright.toolchain.storage.cache import LibraryCache

_TIMEOUT_S = 300.0
# Exceptions of the references pass through the library; -O1 is enough for code that calls PyTorch.
_REFERENCES = ("-std=c++20", "-O1", "-fPIC", "-w", "-fvisibility=hidden")
_TORCH_HEADERS = Path(torch.__file__).parent / "include"


def build_library(planned: PlannedLibrary, folder: Path, settings: Settings) -> Path:
    """Build the library into a folder; what was compiled before comes from the cache.

    Raises:
        BuildFailed: The compiler refused a source or took too long.
        CompilerMissing: There is no working compiler.
        UnsafeCache: Others can write to the cache directory.
        CacheUnusable: The cache directory cannot be written.
    """
    cache = LibraryCache.open(settings.cache_directory)
    compiler = find_compiler(settings)
    headers = {**header_digests(INCLUDE_DIRECTORY), "torch": str(torch.__version__)}
    general = tuple(flag for flag in compiler.flags if not flag.startswith("-march="))
    recipes = (
        object_recipe(planned.references, compiler, _REFERENCES, headers),
        object_recipe(planned.library, compiler, (*general, *planned.level.flags), headers),
    )
    missing = [recipe for recipe in recipes if not cache.holds(recipe)]
    if missing:
        includes = (f"-I{INCLUDE_DIRECTORY}", f"-I{_TORCH_HEADERS}", f"-ffile-prefix-map={INCLUDE_DIRECTORY}/=")
        build_recipes(missing, includes, cache, _TIMEOUT_S, Notice(wanted=settings.notify))
    linked = link_against_torch(compiler, cache, _TIMEOUT_S)
    library = folder / f"lib{planned.name}.so"
    objects = [str(cache.library(recipe)) for recipe in recipes]
    torch_folder = Path(torch.__file__).parent / "lib"
    arguments = ("-shared", "-s", f"-Wl,-soname,{library.name}", *objects, "-o", str(library), *linked)
    core = ("-Wl,--no-as-needed", f"-L{torch_folder}", "-lc10", "-Wl,--as-needed", "-ldl")
    (outcome,) = run_side_by_side([Job((*compiler.command, *arguments, *core), folder)], _TIMEOUT_S, lambda: None)
    if outcome.status != 0:
        raise BuildFailed(f"linking {library.name} failed\n{outcome.transcript}".rstrip())
    return library

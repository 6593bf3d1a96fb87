"""Sources → the libraries of a package: the kernels for each level of processors, and what loads the right ones.

    <package>.so            registers the operators, chooses a level, loads its kernels from the folder it lies in
    <level>.so              all kernels, for one level

Nothing in them is visible to others, so that two packages, and opwright itself, can be loaded side by side.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from opwright.errors import BuildFailed
from opwright.settings import Settings
from opwright.toolchain.build import COMPILE_TIMEOUT_S, build_recipes, link_against_torch
from opwright.toolchain.cache import LibraryCache
from opwright.toolchain.compiler import Compiler, find_compiler
from opwright.toolchain.cpu_levels import CpuLevel
from opwright.toolchain.jobs import Job, run_side_by_side
from opwright.toolchain.notice import Notice
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, Recipe, header_digests, object_recipe
from opwright.toolchain.source import Source

# Two functions of the registration are asked for by name; see codegen/cpp_registration.py.
_VISIBLE = "{ global: opwright_cpu_level; opwright_load_failure; local: *; };\n"


@dataclass(frozen=True, slots=True)
class Bundle:
    """What the libraries of a package are made from.

    Attributes:
        name: What the library is called that loads the others.
        namespace: Where the kernels are registered.
        kernels: Their sources.
        registration: The source that registers the operators and chooses a level.
        levels: The levels to build the kernels for, the last of which the registration is built for.
    """

    name: str
    namespace: str
    kernels: tuple[Source, ...]
    registration: Source
    levels: tuple[CpuLevel, ...]


def build_bundle(
    bundle: Bundle, directory: Path, settings: Settings, *, timeout_s: float = COMPILE_TIMEOUT_S
) -> tuple[Path, ...]:
    """Build the libraries of a package into a directory; what was compiled before comes from the cache.

    Raises:
        BuildFailed: The compiler refused a source or took too long.
        CompilerMissing: There is no working compiler.
        UnsafeCache: Others can write to the cache directory.
        CacheUnusable: The cache directory cannot be written.
    """
    cache = LibraryCache.open(settings.cache_directory)
    compiler = find_compiler(settings)
    headers = header_digests(INCLUDE_DIRECTORY)
    parts = {
        level.name: [_part(source, compiler, level, bundle.namespace, headers) for source in bundle.kernels]
        for level in bundle.levels
    }
    parts[bundle.name] = [_part(bundle.registration, compiler, bundle.levels[-1], bundle.namespace, headers)]
    every = {recipe.key: recipe for recipes in parts.values() for recipe in recipes}
    missing = [recipe for recipe in every.values() if not cache.holds(recipe)]
    if missing:
        build_recipes(missing, (f"-I{INCLUDE_DIRECTORY}",), cache, timeout_s, Notice(wanted=settings.notify))
    torch = link_against_torch(compiler, cache, timeout_s)
    objects = {name: [cache.library(recipe) for recipe in recipes] for name, recipes in parts.items()}
    return _link(objects, compiler, torch, directory, timeout_s)


def _part(source: Source, compiler: Compiler, level: CpuLevel, namespace: str, headers: dict[str, str]) -> Recipe:
    general = tuple(flag for flag in compiler.flags if not flag.startswith("-march="))
    return object_recipe(source, compiler, (*general, *level.flags, f'-DOPWRIGHT_NAMESPACE="{namespace}"'), headers)


def _link(
    objects: dict[str, list[Path]], compiler: Compiler, torch: tuple[str, ...], directory: Path, timeout_s: float
) -> tuple[Path, ...]:
    with tempfile.TemporaryDirectory() as scratch:
        visible = Path(scratch) / "visible.map"
        visible.write_text(_VISIBLE)
        flags = ("-shared", "-s", f"-Wl,--version-script={visible}")
        libraries = {name: directory / f"{name}.so" for name in objects}
        jobs = [
            Job((*compiler.command, *flags, *map(str, objects[name]), "-o", str(library), *torch, "-ldl"), directory)
            for name, library in libraries.items()
        ]
        outcomes = run_side_by_side(jobs, timeout_s, lambda: None)
    for library, outcome in zip(libraries.values(), outcomes, strict=True):
        if outcome.status != 0:
            raise BuildFailed(f"linking {library.name} failed\n{outcome.transcript}".rstrip())
    return tuple(libraries.values())

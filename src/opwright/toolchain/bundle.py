"""Sources → the libraries of a package: kernels for each level of processors, and a library that loads the right ones.

    <package>.so            registers the operators, chooses a level, loads its kernels from the folder it lies in
    <level>.so              all kernels, for one level
    cuda/<source>.so        kernels for GPUs with their launcher, one library for each source

Nothing in them is visible to others, so that two packages, and opwright itself, can be loaded side by side.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from opwright.errors import BuildFailed
from opwright.settings import Settings
from opwright.toolchain.build import COMPILE_TIMEOUT_S, build_recipes, link_against_torch, write_device_code
from opwright.toolchain.compiler import Compiler, find_compiler
from opwright.toolchain.cpu_levels import CpuLevel
from opwright.toolchain.gpu.images import device_facts, host_flags
from opwright.toolchain.gpu.nvrtc import SHIPPED_FLAGS
from opwright.toolchain.process.jobs import Job, run_side_by_side
from opwright.toolchain.process.notice import Notice
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, Recipe, header_digests, linked_objects, object_recipe, recipe
from opwright.toolchain.source import Source
from opwright.toolchain.storage.cache import LibraryCache

CUDA_FOLDER = "cuda"

# Shipped libraries contain no paths of this machine.
_HEADERS = (f"-I{INCLUDE_DIRECTORY}", f"-ffile-prefix-map={INCLUDE_DIRECTORY}/=")
# Functions of the registration that are looked up by name; see codegen/cpp/registration.py.
_VISIBLE = "{ global: opwright_cpu_level; opwright_load_failure; opwright_cuda_failure; local: *; };\n"


@dataclass(frozen=True, slots=True)
class Bundle:
    """What the libraries of a package are made from.

    Attributes:
        name: The name of the library that loads the others.
        namespace: Where the kernels are registered.
        kernels: Their sources.
        registration: The source that registers the operators and chooses a level.
        levels: The levels to build the kernels for, the last of which all else is built for.
        cuda: Sources with kernels for GPUs.
    """

    name: str
    namespace: str
    kernels: tuple[Source, ...]
    registration: Source
    levels: tuple[CpuLevel, ...]
    cuda: tuple[Source, ...] = ()


def build_bundle(
    bundle: Bundle, directory: Path, settings: Settings, *, timeout_s: float = COMPILE_TIMEOUT_S
) -> tuple[Path, ...]:
    """Build the libraries of a package into a directory; what was compiled before comes from the cache.

    Raises:
        BuildFailed: The compiler refused a source or took too long.
        CompilerMissing: There is no working compiler.
        CudaCompilerMissing: There are kernels for GPUs, and no compiler of these.
        UnsafeCache: Others can write to the cache directory.
        CacheUnusable: The cache directory cannot be written.
    """
    cache = LibraryCache.open(settings.cache_directory)
    compiler = find_compiler(settings)
    headers = header_digests(INCLUDE_DIRECTORY)
    parts = {
        level.name: linked_objects(bundle.kernels, compiler, _flags(compiler, level, bundle.namespace), headers)
        for level in bundle.levels
    }
    registering = (*_flags(compiler, bundle.levels[-1], bundle.namespace), *host_flags(settings))
    parts[bundle.name] = [object_recipe(bundle.registration, compiler, registering, headers)]
    missing = _missing((recipe for recipes in parts.values() for recipe in recipes), cache)
    if missing:
        build_recipes(missing, _HEADERS, cache, timeout_s, Notice(wanted=settings.notify))
    torch = link_against_torch(compiler, cache, timeout_s)
    objects = {name: [cache.library(recipe) for recipe in recipes] for name, recipes in parts.items()}
    libraries = _link(objects, compiler, torch, directory, timeout_s)
    return (*libraries, *_for_gpus(bundle, compiler, cache, directory, settings, timeout_s))


def _flags(compiler: Compiler, level: CpuLevel, namespace: str) -> tuple[str, ...]:
    general = (flag for flag in compiler.flags if not flag.startswith("-march="))
    return (*general, *level.flags, f'-DOPWRIGHT_NAMESPACE="{namespace}"')


def _missing(recipes: Iterable[Recipe], cache: LibraryCache) -> list[Recipe]:
    every = {recipe.key: recipe for recipe in recipes}
    return [recipe for recipe in every.values() if not cache.holds(recipe)]


def _for_gpus(
    bundle: Bundle, compiler: Compiler, cache: LibraryCache, directory: Path, settings: Settings, timeout_s: float
) -> tuple[Path, ...]:
    """Build a library for each source with kernels for GPUs: their names, and their images, are each one's own."""
    if not bundle.cuda:
        return ()
    flags = (*_flags(compiler, bundle.levels[-1], bundle.namespace), "-shared", "-s", *host_flags(settings))
    headers = header_digests(INCLUDE_DIRECTORY)
    facts = functools.partial(device_facts, settings=settings, flags=SHIPPED_FLAGS)
    recipes = [recipe(source, compiler, flags, headers, facts(source)) for source in bundle.cuda]
    if missing := _missing(recipes, cache):
        arguments = (*_HEADERS, *link_against_torch(compiler, cache, timeout_s), "-ldl")
        prepare = functools.partial(write_device_code, cache=cache, settings=settings, flags=SHIPPED_FLAGS)
        build_recipes(missing, arguments, cache, timeout_s, Notice(wanted=settings.notify), prepare)
    folder = directory / CUDA_FOLDER
    folder.mkdir()
    return tuple(Path(shutil.copy(cache.library(each), folder / each.product)) for each in recipes)


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

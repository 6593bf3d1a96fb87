"""From sources to libraries: look up, build what is missing, install."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from opwright.errors import BuildFailed
from opwright.settings import Settings
from opwright.toolchain.compiler import Compiler, find_compiler
from opwright.toolchain.gpu.images import device_facts, host_flags, write_kernels
from opwright.toolchain.gpu.nvrtc import FLAGS
from opwright.toolchain.process.jobs import Job, Outcome, run_side_by_side
from opwright.toolchain.process.notice import Notice
from opwright.toolchain.recipe import (
    INCLUDE_DIRECTORY,
    Recipe,
    header_digests,
    kernel_recipe,
    linked_recipe,
    part_recipe,
    shared_recipes,
    torch_stub_recipe,
)
from opwright.toolchain.source import Source
from opwright.toolchain.storage.cache import LibraryCache
from opwright.toolchain.storage.directory import refusing_os_errors
from opwright.toolchain.storage.elf import is_whole_library
from opwright.toolchain.storage.limit import shrink_now_and_then
from opwright.toolchain.storage.locks import hold

COMPILE_TIMEOUT_S = 120.0
_SHOWN_LINES = 5
_ENDS = {None: "took too long and was stopped", 0: "left no whole library, though the compiler said that all was well"}


def build(
    sources: Sequence[Source],
    settings: Settings,
    *,
    timeout_s: float = COMPILE_TIMEOUT_S,
    flags: tuple[str, ...] = (),
) -> tuple[Path, ...]:
    """Return the shared libraries of sources, building those that are not in the cache in parallel.

    The libraries resolve PyTorch's symbols against the libtorch_cpu.so that the process has loaded.

    Args:
        sources: What to build.
        settings: Where the cache is, which compiler to use, whether to log that a build is running.
        timeout_s: How long one compilation may take.
        flags: Flags behind those of every kernel.

    Returns:
        A path for each source, in their order.

    Raises:
        BuildFailed: The compiler refused a source or took too long.
        CompilerMissing: There is no working compiler.
        CudaCompilerMissing: A source has kernels for GPUs, and there is no compiler of these.
        ArchitectureUnknown: The same, and the list of GPUs to compile for cannot be read.
        UnsafeCache: Others can write to the cache directory.
        CacheUnusable: The cache directory cannot be written.
    """
    cache = LibraryCache.open(settings.cache_directory)
    compiler = find_compiler(settings)
    headers = header_digests(INCLUDE_DIRECTORY)
    recipes = tuple(recipe_of(source, compiler, headers, flags, settings) for source in sources)
    missing = tuple({recipe.key: recipe for recipe in recipes if not cache.holds(recipe)}.values())
    if missing:
        notice = Notice(wanted=settings.notify)
        linked = [recipe.source for recipe in missing if recipe.source.device is None]
        shared = shared_recipes(linked, compiler, headers, flags) if linked else []
        parts = {source: part_recipe(source, compiler, headers, flags) for source in linked}
        if not all(map(cache.holds, shared)):
            _compile_beside(list(parts.values()), shared, cache, timeout_s, notice)
        else:  # perhaps by another process, a moment ago, beside the same sources
            parts = {source: part for source, part in parts.items() if cache.holds(part)}
        missing = tuple(_made_of(recipe, parts.get(recipe.source), cache) for recipe in missing)
        objects = (str(cache.library(recipe)) for recipe in shared)
        arguments = (*_including(), *objects, *link_against_torch(compiler, cache, timeout_s))
        prepare = functools.partial(write_device_code, cache=cache, settings=settings)
        build_recipes(missing, arguments, cache, timeout_s, notice, prepare)
        shrink_now_and_then(cache.root, settings.cache_limit_bytes)
    return tuple(cache.library(recipe) for recipe in recipes)


def build_shared(
    settings: Settings,
    flags: tuple[str, ...] = (),
    kernels: Sequence[Source] = (),
    timeout_s: float = COMPILE_TIMEOUT_S,
) -> tuple[Path, ...]:
    """Return the objects of what kernels share, building those that are not in the cache; all kernels need the first.

    Raises:
        OpwrightError: As `build` does.
    """
    cache, compiler = LibraryCache.open(settings.cache_directory), find_compiler(settings)
    shared = shared_recipes(kernels, compiler, header_digests(INCLUDE_DIRECTORY), flags)
    if missing := [recipe for recipe in shared if not cache.holds(recipe)]:
        build_recipes(missing, _including(), cache, timeout_s, Notice(wanted=False))
    return tuple(cache.library(recipe) for recipe in shared)


def _compile_beside(
    parts: Sequence[Recipe], shared: Sequence[Recipe], cache: LibraryCache, timeout_s: float, notice: Notice
) -> None:
    """Compile kernels beside what they share and the cache lacks; the first of that is probably being built already."""
    others = [recipe for recipe in shared[1:] if not cache.holds(recipe)]
    build_recipes([*parts, *others], _including(), cache, timeout_s, notice)
    build_recipes(shared[:1], _including(), cache, timeout_s, Notice(wanted=False))


def _including() -> tuple[str, ...]:
    return (f"-I{INCLUDE_DIRECTORY}",)


def _made_of(recipe: Recipe, part: Recipe | None, cache: LibraryCache) -> Recipe:
    """The recipe of the same library, where its source is compiled already."""
    return replace(recipe, inputs=(str(cache.library(part)),)) if part else recipe


def build_recipes(
    recipes: Sequence[Recipe],
    arguments: tuple[str, ...],
    cache: LibraryCache,
    timeout_s: float,
    notice: Notice,
    prepare: Callable[[Recipe, Path], object] = lambda recipe, directory: None,
) -> None:
    """Build different recipes with further arguments, unless another process does it meanwhile.

    Args:
        recipes: What to build.
        arguments: Further arguments of the compilers.
        cache: Where to keep it.
        timeout_s: How long a compiler may take.
        notice: Logs if it takes long.
        prepare: Writes what a recipe needs besides its source into the directory that it is built in.
    """
    title = _title(recipes)
    with refusing_os_errors(cache.root):
        cache.sweep()
        locks = [cache.lock(recipe) for recipe in recipes]
    waiting = lambda pid: notice.tick(f"waiting for process {pid} to build {title}")  # noqa: E731
    with refusing_os_errors(cache.root), hold(locks, waiting, 2 * timeout_s):
        missing = [recipe for recipe in recipes if not cache.holds(recipe)]  # by another process meanwhile
        if not missing:
            return
        jobs = [Job(_command(recipe, arguments), cache.begin(recipe)) for recipe in missing]
        for recipe, job in zip(missing, jobs, strict=True):
            prepare(recipe, job.directory)
        outcomes = run_side_by_side(jobs, timeout_s, lambda: notice.tick(f"building {title}"))
        failures = []
        for recipe, job, outcome in zip(missing, jobs, outcomes, strict=True):
            if outcome.status == 0 and is_whole_library(job.directory / recipe.product):
                cache.install(recipe, job.directory)
            else:
                kept = cache.keep_failure(recipe, job.directory) / f"{recipe.source.name}.cpp"
                failures.append(_failure(job, outcome, kept))
    if failures:
        raise failures[0]


def link_against_torch(compiler: Compiler, cache: LibraryCache, timeout_s: float) -> tuple[str, ...]:
    """Need libtorch_cpu.so for its name alone, and the standard libraries that follow only if they are used."""
    stub = torch_stub_recipe(compiler)
    if not cache.holds(stub):
        build_recipes((stub,), (), cache, timeout_s, Notice(wanted=False))
    return "-Wl,--no-as-needed", str(cache.library(stub)), "-Wl,--as-needed"


def recipe_of(
    source: Source, compiler: Compiler, headers: Mapping[str, str], flags: tuple[str, ...], settings: Settings
) -> Recipe:
    """Say how `build` makes a library."""
    if source.device is None:
        return linked_recipe(source, compiler, headers, flags)
    return kernel_recipe(source, compiler, headers, (*flags, *host_flags(settings)), device_facts(source, settings))


def write_device_code(
    recipe: Recipe, directory: Path, cache: LibraryCache, settings: Settings, flags: Sequence[str] = FLAGS
) -> None:
    """Write what a source with CUDA kernels needs besides itself; where that fails, keep the kernels to look at.

    Raises:
        BuildFailed: The compiler refused the kernels.
        CudaCompilerMissing: There is no compiler of CUDA kernels.
    """
    if recipe.source.device is None:
        return
    shown_as = cache.failed(recipe) / f"{recipe.source.name}.cu"
    try:
        write_kernels(recipe.source, directory, INCLUDE_DIRECTORY, settings, shown_as, flags)
    except BuildFailed:
        cache.keep_failure(recipe, directory)
        raise


def _title(recipes: Sequence[Recipe]) -> str:
    name = recipes[0].source.name
    return name if len(recipes) == 1 else f"{name} and {len(recipes) - 1} more"


def _command(recipe: Recipe, arguments: tuple[str, ...]) -> tuple[str, ...]:
    return (*recipe.command, *recipe.inputs, "-o", recipe.product, *arguments)


def _failure(job: Job, outcome: Outcome, kept: Path) -> BuildFailed:
    lines = [line for line in outcome.transcript.splitlines() if line.strip()][:_SHOWN_LINES]
    reason = _ENDS.get(outcome.status, "failed")
    return BuildFailed(
        "\n".join([f"compiling {kept} {reason}", *(f"  {line}" for line in lines)]),
        hint=f"see it again with: cd {shlex.quote(str(kept.parent))} && {shlex.join(job.command)}",
    )

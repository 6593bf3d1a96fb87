"""Plan → file: looked up in the cache, or built under locks that the system releases if their holder dies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from opwright.extensions.compilation import Compilation, Product, product
from opwright.extensions.objects import Objects
from opwright.extensions.plan import DEVICE_LINKED, Plan
from opwright.extensions.progress import PATIENCE_S, Progress
from opwright.settings import Settings
from opwright.toolchain.process.jobs import Job
from opwright.toolchain.process.notice import Notice
from opwright.toolchain.storage.cache import Entry, LibraryCache
from opwright.toolchain.storage.directory import refusing_os_errors
from opwright.toolchain.storage.limit import shrink_now_and_then
from opwright.toolchain.storage.locks import hold
from opwright.toolchain.storage.records import RecordStore


def build_extension(plan: Plan, settings: Settings, *, verbose: bool = False, keep_objects: bool = True) -> Path:
    """Return the file that a plan makes, building what the cache does not have.

    Processes that build the same file wait for each other; if the builder is killed, the next one takes over.

    Args:
        plan: The steps.
        settings: Where the cache is, and how many compilers may run at a time.
        verbose: Whether to tell everything on stderr.
        keep_objects: Whether objects stay in the cache, so that a change to one source recompiles only that one.

    Raises:
        BuildFailed: A compiler or the linker fails.
        UnsafeCache: Others can write to the cache directory.
        CacheUnusable: The cache directory cannot be written.
    """
    cache = LibraryCache.open(settings.cache_directory)
    progress = Progress(plan.title, settings, verbose, Notice(wanted=settings.notify and not verbose))
    objects = Objects(cache, RecordStore(settings), plan.installed, plan.directories)
    library = _find(plan, objects)
    if library is not None:
        progress.say(f"{plan.title} has not changed")
        return library
    with refusing_os_errors(cache.root):
        cache.sweep()
        built = _build(plan, objects, progress, keep_objects)
    shrink_now_and_then(cache.root, settings.cache_limit_bytes)
    return built


def _find(plan: Plan, objects: Objects) -> Path | None:
    """Return the file that a plan makes if it is in the cache."""
    if plan.precompiled is not None:
        header = objects.known(plan.precompiled)
        objects = replace(objects, prelude="" if header is None else header.key)
    known = [objects.known(each) for each in plan.compilations]
    made = [each for each in known if each is not None]
    library = plan.linked(made)
    return objects.cache.library(library) if len(made) == len(known) and objects.cache.holds(library) else None


def _build(plan: Plan, objects: Objects, progress: Progress, keep_objects: bool) -> Path:
    cache = objects.cache
    prelude: tuple[str, ...] = ()
    if plan.precompiled is not None:
        header = _precompile(plan.precompiled, objects, progress)
        prelude = ("-include", str(cache.library(header).with_suffix("")))
        objects = replace(objects, prelude=header.key)
    with _locked(plan.compilations, cache, progress):
        made = objects.compile(plan.compilations, prelude, progress)
        library = plan.linked(made)
        with _locked([library], cache, progress):
            if not cache.holds(library):
                _link(plan, library, [cache.library(each) for each in made], cache, progress)
        if not keep_objects:
            for each in made:
                cache.discard(each)
    return cache.library(library)


def _precompile(header: Compilation, objects: Objects, progress: Progress) -> Product:
    with _locked([header], objects.cache, progress):
        (made,) = objects.compile([header], (), progress)
    return made


def _link(plan: Plan, library: Product, objects: Sequence[Path], cache: LibraryCache, progress: Progress) -> None:
    directory = cache.begin(library)
    names = [str(path) for path in objects]
    if plan.device_link is not None:
        step = product(DEVICE_LINKED, library.facts)
        _run(step, Job((*plan.device_link, *names, "-o", DEVICE_LINKED), directory), cache, progress)
        names.append(DEVICE_LINKED)
    compiler, arguments = plan.link
    _run(library, Job((*compiler, *names, "-o", library.product, *arguments), directory), cache, progress)
    cache.install(library, directory)


def _run(entry: Product, job: Job, cache: LibraryCache, progress: Progress) -> None:
    for _, _, failure in progress.run([(entry, job)], cache):
        if failure is not None:
            raise failure


def _locked(entries: Sequence[Entry], cache: LibraryCache, progress: Progress) -> AbstractContextManager[None]:
    return hold([cache.lock(entry) for entry in entries], progress.wait, PATIENCE_S)

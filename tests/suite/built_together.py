"""Compile the kernels of many operators as one file, so that the headers are compiled only once.

    build_together(lambda: operator(x).sum().backward(), …)

Each call first runs without kernels. The sources that it would have built are collected, compiled as one library, and
stored in the cache as the library of each source, where later calls find it. If that fails, each kernel is built on its
own when it is needed.

In `one_file_each_way` this is done for the forward and the backward pass of each operator, without a first run.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from opwright.errors import NoKernel, OpwrightError
from opwright.settings import Settings
from opwright.toolchain.build import COMPILE_TIMEOUT_S, build, build_shared, link_against_torch, recipe_of
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, Recipe, header_digests
from opwright.toolchain.source import Source
from opwright.toolchain.storage.cache import LibraryCache
from opwright.toolchain.storage.locks import hold

Wanted = dict[tuple[Settings, tuple[str, ...]], dict[str, Source]]


@contextlib.contextmanager
def one_file_each_way() -> Iterator[None]:
    """Have the kernels that one call needs compiled as one file, in caches that share the libraries of this run."""

    def build_in_one_file(
        sources: Sequence[Source], settings: Settings, flags: tuple[str, ...] = ()
    ) -> tuple[Path, ...]:
        if (settings.cache_directory / "libraries").is_symlink():
            _build([source for source in sources if source.device is None], settings, flags)
        return build(sources, settings, flags=flags)

    with patch("opwright.binding.variants.building.build", build_in_one_file):
        yield


def build_together(*calls: Callable[[], Any]) -> int:
    """Build the CPU kernels that calls of new operators need; returns the number of new libraries."""
    wanted: Wanted = {}
    with _collecting(wanted):
        for call in calls:
            with contextlib.suppress(Exception):  # the real call will raise it again
                call()
    return sum(_build(list(sources.values()), *how) for how, sources in wanted.items())


@contextlib.contextmanager
def _collecting(wanted: Wanted) -> Iterator[None]:
    def collect(sources: Sequence[Source], settings: Settings, flags: tuple[str, ...] = ()) -> NoReturn:
        named = wanted.setdefault((settings, flags), {})
        named.update((source.name, source) for source in sources if source.device is None)
        raise NoKernel("it is built together with others")

    from opwright.binding.variants.variants import Variants

    refuse, refused = Variants._refuse, []

    def note(variants: Variants, kind: Any, refusal: OpwrightError) -> OpwrightError:
        refused.append((variants, kind))
        return refuse(variants, kind, refusal)

    try:
        with (
            patch("opwright.binding.variants.building.build", collect),
            patch.object(Variants, "_refuse", note),
            patch.object(Variants, "is_refused", lambda *_: False),  # so that no call is left to its function for good
            patch("opwright.binding.fallbacks.Fallbacks.is_strict", False),
            warnings.catch_warnings(action="ignore"),
        ):
            yield
    finally:
        for variants, kind in refused:  # until here they are remembered, so that nothing is derived twice
            variants._refusals.pop(kind, None)


def _build(sources: Sequence[Source], settings: Settings, flags: tuple[str, ...]) -> int:
    cache, compiler = LibraryCache.open(settings.cache_directory), find_compiler(settings)
    headers = header_digests(INCLUDE_DIRECTORY)
    recipes = {each.key: each for each in (recipe_of(source, compiler, headers, flags, settings) for source in sources)}
    missing = [recipe for recipe in recipes.values() if not cache.holds(recipe)]
    if len(missing) < 2:
        return 0
    shared = build_shared(settings, flags, [recipe.source for recipe in missing])
    arguments = (f"-I{INCLUDE_DIRECTORY}", *map(str, shared), *link_against_torch(compiler, cache, COMPILE_TIMEOUT_S))
    with hold([cache.lock(recipe) for recipe in missing], lambda _: None, COMPILE_TIMEOUT_S):
        missing = [recipe for recipe in missing if not cache.holds(recipe)]  # a kernel in two files registers twice
        if len(missing) < 2:
            return 0
        folders = [cache.begin(recipe) for recipe in missing]
        together = folders[0] / "together.cpp"
        together.write_text("".join(map(_apart, range(len(missing)), missing)), encoding="utf-8")
        command = (*missing[0].command, together.name, "-o", missing[0].product, *arguments)
        built = subprocess.run(command, cwd=together.parent, capture_output=True, check=False)
        if built.returncode:
            return 0
        for recipe, folder in zip(missing[1:], folders[1:], strict=True):
            os.link(folders[0] / missing[0].product, folder / recipe.product)
        for recipe, folder in zip(missing, folders, strict=True):
            cache.install(recipe, folder)
    return len(missing)


def _apart(number: int, recipe: Recipe) -> str:
    """A source whose functions get a namespace of their own, as two sources may use the same names."""
    return f"#define emitted emitted_{number}\n{recipe.source.text}\n#undef emitted\n"

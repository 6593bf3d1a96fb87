"""CustomOperators → one shared library for ONNX Runtime, which needs neither Python nor PyTorch."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from opwright.deployment.onnx.custom.emission import emit_operators
from opwright.deployment.onnx.custom.planned import CustomOperator
from opwright.errors import BuildFailed
from opwright.settings import Settings
from opwright.toolchain.build import COMPILE_TIMEOUT_S, build_recipes
from opwright.toolchain.compiler import Compiler, find_compiler
from opwright.toolchain.cpu_levels import CpuLevel, cpu_levels
from opwright.toolchain.process.jobs import Job, run_side_by_side
from opwright.toolchain.process.notice import Notice
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, header_digests, object_recipe
from opwright.toolchain.source import Source
from opwright.toolchain.storage.cache import LibraryCache
from opwright.toolchain.storage.records import digest

_RUNTIME = Path(__file__).parent / "runtime"
_VISIBLE = "{ global: RegisterCustomOps; local: *; };\n"
# The pool of memory and the watch over forks are for processes of PyTorch; elsewhere than on Linux there are none.
_OF_KERNELS = ("-U__linux__",)


def build_library(name: str, operators: Sequence[CustomOperator], folder: Path, settings: Settings) -> Path:
    """Build it.

    Args:
        name: What it is called: lib<name>.so.
        operators: What is in it.
        folder: Where it goes.
        settings: Where to build, and with which compiler.

    Raises:
        BuildFailed: The compiler refused a source or took too long.
        CompilerMissing: There is no working compiler.
        UnsafeCache, CacheUnusable: The cache directory cannot be used.
    """
    cache = LibraryCache.open(settings.cache_directory)
    compiler, level = find_compiler(settings), shipped_level()
    headers = header_digests(INCLUDE_DIRECTORY)
    headers |= {f"onnx/{file.name}": digest(file.read_bytes()) for file in sorted(_RUNTIME.glob("*.h"))}
    kernels = {variant.source.name: variant.source for each in operators for variant in each.variants}
    flags = _flags(compiler, level)
    registering = Source(f"{name}_operators", emit_operators(operators, level))
    recipes = [object_recipe(source, compiler, (*flags, *_OF_KERNELS), headers) for source in kernels.values()]
    recipes.append(object_recipe(registering, compiler, flags, headers))
    missing = [recipe for recipe in recipes if not cache.holds(recipe)]
    if missing:
        where = [f"-I{path}" for path in (INCLUDE_DIRECTORY, _RUNTIME)]
        where += [f"-ffile-prefix-map={path}/=" for path in (INCLUDE_DIRECTORY, _RUNTIME)]
        build_recipes(missing, tuple(where), cache, COMPILE_TIMEOUT_S, Notice(wanted=settings.notify))
    return _link([cache.library(recipe) for recipe in recipes], compiler, folder / f"lib{name}.so")


def shipped_level() -> CpuLevel:
    """The processors that libraries are for: on x86-64, those with AVX2."""
    levels = cpu_levels()
    return next((level for level in levels if level.name == "x86-64-v3"), levels[-1])


def _flags(compiler: Compiler, level: CpuLevel) -> tuple[str, ...]:
    return (*(flag for flag in compiler.flags if not flag.startswith("-march=")), *level.flags)


def _link(objects: Sequence[Path], compiler: Compiler, library: Path) -> Path:
    with tempfile.TemporaryDirectory() as scratch:
        visible = Path(scratch) / "visible.map"
        visible.write_text(_VISIBLE)
        flags = ("-shared", "-s", f"-Wl,--version-script={visible}", "-Wl,-z,defs", "-pthread")
        command = (*compiler.command, *flags, *map(str, objects), "-o", str(library))
        (outcome,) = run_side_by_side([Job(command, library.parent)], COMPILE_TIMEOUT_S, lambda: None)
    if outcome.status != 0:
        raise BuildFailed(f"linking {library.name} failed\n{outcome.transcript}".rstrip())
    return library

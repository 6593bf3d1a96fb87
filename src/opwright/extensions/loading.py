"""load: a user's own C++ and CUDA sources, built and loaded; the options of `torch.utils.cpp_extension.load`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from opwright.errors import SourcesRefused, ToolkitMissing
from opwright.extensions.build import build_extension
from opwright.extensions.importing import import_module, load_library
from opwright.extensions.plan import Plan, make_plan, without_cuda
from opwright.extensions.request import Kind, Request
from opwright.extensions.sources import TORCHS_OWN, check_name, source_files
from opwright.settings import Settings


def load(
    name: str,
    sources: str | Path | Sequence[str | Path],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | Path] | None = None,
    build_directory: str | Path | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
    *,
    use_pch: bool = False,
    cuda_optional: bool = False,
    settings: Settings | None = None,
) -> ModuleType | str:
    """Build C++ and CUDA sources against PyTorch and load what comes out of it.

    The arguments are those of `torch.utils.cpp_extension.load`, in the same order. What was built is found again by the
    contents of the sources and of every header they include, the flags, the compilers and PyTorch, so a second call
    builds nothing and a changed header builds anew. Several processes may call it at once.

    Args:
        name: What TORCH_EXTENSION_NAME is, and the name of the module.
        sources: The files; `.cu` and `.cuh` go to nvcc, the others to the C++ compiler.
        extra_cflags: Further flags for the C++ compiler. Without one for it, sources are optimized (-O2).
        extra_cuda_cflags: Further flags for nvcc. Relocatable device code (-rdc=true) is linked.
        extra_sycl_cflags: Refused; for the order of the arguments.
        extra_ldflags: Further flags for the linker.
        extra_include_paths: Where headers are looked for first.
        build_directory: Where a copy of what was built is put; None to leave it in the cache alone.
        verbose: Whether every command, and all that compilers print, goes to stderr.
        with_cuda: Whether CUDA's headers and libraries are at hand; None for where a source is CUDA.
        with_sycl: Refused if true; for the order of the arguments.
        is_python_module: Whether a module of Python is loaded, or else a library that registers operators.
        is_standalone: Whether a program is built instead.
        keep_intermediates: Whether objects stay in the cache, so that a change to one source compiles one source.
        use_pch: Whether torch/extension.h is compiled once for all extensions with the same flags (g++ only).
        cuda_optional: Whether the C++ sources alone will do where CUDA cannot be built; with CUDA, they see WITH_CUDA.
        settings: Where the cache is, and which compilers to use; None for those of the environment.

    Returns:
        The module; the path of the library where `is_python_module` is false; the path of the program where
        `is_standalone` is true.

    Raises:
        SourcesRefused: The sources cannot be built as they are, or the options contradict each other.
        CompilerMissing: There is no working C++ compiler.
        ToolkitMissing: There are CUDA sources, and no CUDA toolkit or no PyTorch for them.
        ArchitectureUnknown: TORCH_CUDA_ARCH_LIST names what nvcc does not compile for.
        BuildFailed: A compiler or the linker refuses; the message is its first error, with file and line.
        ExtensionUnloadable: The library has no such module, or lacks a symbol.
        UnsafeCache: Others can write to the cache directory.
        CacheUnusable: The cache directory cannot be written.
    """
    refuse_sycl(with_sycl, extra_sycl_cflags)
    request = Request(
        check_name(name),
        source_files([sources] if isinstance(sources, str | Path) else sources),
        kind_of(is_python_module, is_standalone),
        words(extra_cflags),
        words(extra_cuda_cflags),
        words(extra_ldflags),
        include_directories=directories(extra_include_paths),
        with_cuda=bool(with_cuda),
        precompile=use_pch,
    )
    return load_request(
        request,
        settings or Settings.from_environment(),
        verbose=verbose,
        keep_objects=keep_intermediates,
        cuda_optional=cuda_optional,
        copy_to=build_directory,
    )


def load_request(
    request: Request,
    settings: Settings,
    *,
    verbose: bool = False,
    keep_objects: bool = True,
    cuda_optional: bool = False,
    copy_to: str | Path | None = None,
) -> ModuleType | str:
    """Build what is asked for and load it; see `load`."""
    plan = make_plan_for(request, settings, cuda_optional)
    built = build_extension(plan, settings, verbose=verbose, keep_objects=keep_objects)
    shown = built if copy_to is None else _copy(built, Path(copy_to))
    if request.kind == "module":
        return import_module(request.name, built)
    if request.kind == "library":
        load_library(request.name, built)
    return str(shown)


def kind_of(is_python_module: bool, is_standalone: bool) -> Kind:
    """Return what two switches ask for. As in torch, a program is one that is no module."""
    if is_standalone and is_python_module:
        raise SourcesRefused(
            "an extension cannot be a module of Python and a program",
            hint="pass is_python_module=False with is_standalone",
        )
    return "program" if is_standalone else "module" if is_python_module else "library"


def refuse_sycl(*wishes: object) -> None:
    """Refuse what would need a compiler for SYCL."""
    if any(wishes):
        raise SourcesRefused("SYCL sources are not built here", hint=TORCHS_OWN)


def words(flags: Sequence[str] | None) -> tuple[str, ...]:
    """Return flags without the blanks around them."""
    if isinstance(flags, str):
        raise SourcesRefused(f"flags are a list of words, not the text {flags!r}", hint=f"pass {flags.split()!r}")
    return tuple(flag.strip() for flag in flags or ())


def directories(paths: Sequence[str | Path] | None) -> tuple[Path, ...]:
    """Return folders by their absolute paths."""
    return tuple(Path(os.path.abspath(path)) for path in paths or ())


def make_plan_for(request: Request, settings: Settings, cuda_optional: bool) -> Plan:
    """Plan a build; of the C++ sources alone, where CUDA is optional and cannot be built."""
    try:
        return make_plan(request, settings)
    except ToolkitMissing:
        rest = without_cuda(request)
        if not (cuda_optional and rest.sources):
            raise
    return make_plan(rest, settings)


def _copy(built: Path, directory: Path) -> Path:
    """Put a copy beside its place, then rename it there, so that nobody sees half of one."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=f".{built.name}.")
    os.close(descriptor)
    shutil.copy2(built, temporary)
    os.replace(temporary, directory / built.name)
    return directory.absolute() / built.name

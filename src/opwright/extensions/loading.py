"""load: build and load a user's own C++ and CUDA sources, with the options of `torch.utils.cpp_extension.load`."""

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
    """Build C++ and CUDA sources against PyTorch and load the result.

    The arguments are those of `torch.utils.cpp_extension.load`, in the same order. A build is cached by the contents of
    the sources and of every header they include, the flags, the compilers and PyTorch: a second call builds nothing,
    and a changed header leads to a rebuild. Several processes may call it at once.

    Args:
        name: The name of the module, and the value of TORCH_EXTENSION_NAME.
        sources: The files; `.cu` and `.cuh` go to nvcc, the others to the C++ compiler.
        extra_cflags: Further flags for the C++ compiler. The default optimization level is -O2.
        extra_cuda_cflags: Further flags for nvcc. Relocatable device code (-rdc=true) is linked.
        extra_sycl_cflags: Not supported; here to keep the order of the arguments.
        extra_ldflags: Further flags for the linker.
        extra_include_paths: Where headers are looked for first.
        build_directory: A folder for a copy of the build; None to keep it only in the cache.
        verbose: Whether every command, and all that compilers print, goes to stderr.
        with_cuda: Whether to use CUDA's headers and libraries; None to decide by the sources.
        with_sycl: Not supported if true; here to keep the order of the arguments.
        is_python_module: Whether to load a Python module, or else a library that registers operators.
        is_standalone: Whether a program is built instead.
        keep_intermediates: Whether objects stay in the cache, so that a change to one source recompiles only that one.
        use_pch: Whether torch/extension.h is compiled once for all extensions with the same flags (g++ only).
        cuda_optional: Whether to build only the C++ sources if CUDA cannot be built; with CUDA, WITH_CUDA is defined.
        settings: Where the cache is, and which compilers to use; None for the settings of the environment.

    Returns:
        The module; the path of the library where `is_python_module` is false; the path of the program where
        `is_standalone` is true.

    Raises:
        SourcesRefused: The sources cannot be built, or the options contradict each other.
        CompilerMissing: There is no working C++ compiler.
        ToolkitMissing: There are CUDA sources, and no CUDA toolkit or no PyTorch for them.
        ArchitectureUnknown: TORCH_CUDA_ARCH_LIST names what nvcc does not compile for.
        BuildFailed: A compiler or the linker fails; the message is its first error, with file and line.
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
    """Build a request and load the result; see `load`."""
    plan = make_plan_for(request, settings, cuda_optional)
    built = build_extension(plan, settings, verbose=verbose, keep_objects=keep_objects)
    shown = built if copy_to is None else _copy(built, Path(copy_to))
    if request.kind == "module":
        return import_module(request.name, built)
    if request.kind == "library":
        load_library(request.name, built)
    return str(shown)


def kind_of(is_python_module: bool, is_standalone: bool) -> Kind:
    """Return the kind that two switches ask for. As in torch, a program needs is_python_module=False."""
    if is_standalone and is_python_module:
        raise SourcesRefused(
            "an extension cannot be both a Python module and a program",
            hint="pass is_python_module=False with is_standalone",
        )
    return "program" if is_standalone else "module" if is_python_module else "library"


def refuse_sycl(*wishes: object) -> None:
    """Refuse options that need a SYCL compiler."""
    if any(wishes):
        raise SourcesRefused("SYCL sources are not built here", hint=TORCHS_OWN)


def words(flags: Sequence[str] | None) -> tuple[str, ...]:
    """Return flags without surrounding blanks."""
    if isinstance(flags, str):
        raise SourcesRefused(
            f"flags must be a list of strings, not the string {flags!r}", hint=f"pass {flags.split()!r}"
        )
    return tuple(flag.strip() for flag in flags or ())


def directories(paths: Sequence[str | Path] | None) -> tuple[Path, ...]:
    """Return the absolute paths of folders."""
    return tuple(Path(os.path.abspath(path)) for path in paths or ())


def make_plan_for(request: Request, settings: Settings, cuda_optional: bool) -> Plan:
    """Plan a build; only of the C++ sources if CUDA is optional and cannot be built."""
    try:
        return make_plan(request, settings)
    except ToolkitMissing:
        rest = without_cuda(request)
        if not (cuda_optional and rest.sources):
            raise
    return make_plan(rest, settings)


def _copy(built: Path, directory: Path) -> Path:
    """Write a copy beside its place, then rename it, so that no process sees an incomplete file."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=f".{built.name}.")
    os.close(descriptor)
    shutil.copy2(built, temporary)
    os.replace(temporary, directory / built.name)
    return directory.absolute() / built.name

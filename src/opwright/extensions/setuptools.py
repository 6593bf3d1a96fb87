"""For a `setup.py`: build extensions as `opwright.load` does, and install them with setuptools.

from opwright.extensions.setuptools import BuildExtension, CUDAExtension

setup(
    ext_modules=[CUDAExtension("package.module", ["module.cpp", "kernels.cu"], cuda_optional=True)],
    cmdclass={"build_ext": BuildExtension},
)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import setuptools
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

from opwright.errors import OpwrightError
from opwright.extensions.build import build_extension
from opwright.extensions.loading import directories, make_plan_for
from opwright.extensions.request import Request
from opwright.extensions.sources import check_name, source_files
from opwright.settings import Settings

_TORCHS_LIBRARIES = frozenset({"c10", "torch", "torch_cpu", "torch_python", "c10_cuda", "torch_cuda", "cudart"})


class NativeExtension(setuptools.Extension):
    """An extension of PyTorch; made by `CppExtension` and `CUDAExtension`.

    Attributes:
        with_cuda: Whether to use CUDA's headers and libraries, also for C++ sources.
        cuda_optional: Whether to build only the C++ sources if CUDA cannot be built.
        device_link_flags: Further flags for the device link; None to link device code only if it is relocatable.
    """

    with_cuda = False
    cuda_optional = False
    device_link_flags: tuple[str, ...] | None = None


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> NativeExtension:  # noqa: N802
    """Return a C++ extension; the arguments are those of `setuptools.Extension`.

    Args:
        name: The dotted name of the module.
        sources: The files, relative to `setup.py`.
        args: What else `setuptools.Extension` takes.
        kwargs: What else `setuptools.Extension` takes; `extra_compile_args` may be a mapping with "cxx".
    """
    kwargs["language"] = "c++"
    return NativeExtension(name, [os.fspath(source) for source in sources], *args, **kwargs)


def CUDAExtension(  # noqa: N802
    name: str,
    sources: Sequence[str],
    *args: Any,
    dlink: bool = False,
    dlink_libraries: Sequence[str] = (),
    cuda_optional: bool = False,
    **kwargs: Any,
) -> NativeExtension:
    """Return an extension of C++ and CUDA sources.

    Args:
        name: The dotted name of the module.
        sources: The files, relative to `setup.py`.
        args: What else `setuptools.Extension` takes.
        dlink: Whether to link device code; relocatable device code is always linked.
        dlink_libraries: Static libraries of device code to link with.
        cuda_optional: Whether to build only the C++ sources if CUDA cannot be built; with CUDA, WITH_CUDA is defined.
        kwargs: What else `setuptools.Extension` takes; `extra_compile_args` may be a mapping with "cxx" and "nvcc".
    """
    extension = CppExtension(name, sources, *args, **kwargs)
    extension.with_cuda = True
    extension.cuda_optional = cuda_optional
    if dlink or dlink_libraries:
        folders = [f"-L{folder}" for folder in directories(extension.library_dirs)]
        extension.device_link_flags = (*folders, *(f"-l{library}" for library in dlink_libraries))
    return extension


class BuildExtension(build_ext):
    """Builds extensions of PyTorch, also those of `torch.utils.cpp_extension`; setuptools builds all others.

    Builds are kept in opwright's cache, so that a second build compiles only what has changed, judged by the contents
    of sources and headers. Ninja is not needed.
    """

    no_python_abi_suffix = False

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """Return this command with options of `torch.utils.cpp_extension.BuildExtension`.

        Args:
            options: `no_python_abi_suffix` leaves Python's version out of the file's name; `use_ninja` has no effect.
        """
        chosen = {"no_python_abi_suffix": bool(options.get("no_python_abi_suffix", False))}
        return type(cls.__name__, (cls,), chosen)

    def get_ext_filename(self, fullname: str) -> str:
        """Return the name of the file of an extension."""
        name = str(super().get_ext_filename(fullname))
        first, *_, last = Path(name).name.split(".")
        return str(Path(name).with_name(f"{first}.{last}")) if self.no_python_abi_suffix else name

    def build_extension(self, ext: setuptools.Extension) -> None:
        """Build one extension and copy it to the place that setuptools asks for."""
        if not _is_native(ext):
            super().build_extension(ext)
            return
        try:
            built = self._build(ext)
        except OpwrightError as error:
            raise CompileError(str(error)) from error
        place = Path(self.get_ext_fullpath(ext.name))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built, place)

    def _build(self, ext: setuptools.Extension) -> Path:
        settings = Settings.from_environment()
        plan = make_plan_for(self._request(ext), settings, getattr(ext, "cuda_optional", False))
        return build_extension(plan, settings, verbose=self.verbose > 1)

    def _request(self, ext: setuptools.Extension) -> Request:
        flags = _flags_by_compiler(ext)
        macros = _macro_flags(ext)
        return Request(
            check_name(ext.name.rpartition(".")[2]),
            source_files(ext.sources),
            cpp_flags=(*macros, *flags["cxx"]),
            cuda_flags=(*macros, *flags["nvcc"]),
            link_flags=(*_flags_of(self.compiler.linker_so, without="-shared"), *_link_flags(ext)),
            device_link_flags=_device_link_flags(ext, flags["nvcc_dlink"]),
            include_directories=directories([*ext.include_dirs, *self.compiler.include_dirs]),
            base_flags=_flags_of(self.compiler.compiler_so),
            with_cuda=getattr(ext, "with_cuda", False),
            limited_api=bool(ext.py_limited_api),
        )


def _is_native(ext: setuptools.Extension) -> bool:
    return isinstance(ext, NativeExtension) or "torch_cpu" in ext.libraries


def _flags_by_compiler(ext: setuptools.Extension) -> dict[str, tuple[str, ...]]:
    given: Any = ext.extra_compile_args
    named = given if isinstance(given, dict) else {"cxx": given, "nvcc": given}
    return {compiler: tuple(named.get(compiler, ())) for compiler in ("cxx", "nvcc", "nvcc_dlink")}


def _device_link_flags(ext: setuptools.Extension, of_torch: Sequence[str]) -> tuple[str, ...] | None:
    """Return our option, or the one that torch's own CUDAExtension stores in its place."""
    if of_torch:
        return tuple(flag for flag in of_torch if flag != "-dlink")
    return getattr(ext, "device_link_flags", None)


def _macro_flags(ext: setuptools.Extension) -> tuple[str, ...]:
    pairs = [macro if len(macro) == 2 else (macro[0], None) for macro in ext.define_macros]
    defined = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in pairs]
    return (*defined, *(f"-U{name}" for name in ext.undef_macros))


def _link_flags(ext: setuptools.Extension) -> tuple[str, ...]:
    return (
        *(os.path.abspath(file) for file in ext.extra_objects),
        *(f"-L{folder}" for folder in directories(ext.library_dirs)),
        *(f"-Wl,-rpath,{folder}" for folder in ext.runtime_library_dirs),
        *(f"-l{library}" for library in ext.libraries if library not in _TORCHS_LIBRARIES),
        *ext.extra_link_args,
    )


def _flags_of(command: Sequence[str], without: str = "") -> tuple[str, ...]:
    """Return the flags that setuptools gives a compiler, without the compiler."""
    return tuple(word for word in command if word.startswith("-") and word != without)

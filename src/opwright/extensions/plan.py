"""Request → plan: the command that compiles each source, and the one that links the objects."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from opwright.errors import ToolkitMissing
from opwright.extensions import flags
from opwright.extensions.compilation import Compilation, Product, compilation, product
from opwright.extensions.request import Request
from opwright.extensions.sources import SourceFile
from opwright.settings import Settings
from opwright.toolchain.compiler import Compiler, find_compiler
from opwright.toolchain.gpu.toolkit import CudaToolkit, find_cuda_toolkit
from opwright.toolchain.headers.torch_build import SYSTEM_FOLDERS

DEVICE_LINKED = "device_link.o"

# g++ 12 takes 1.5 GB for torch/extension.h; nvcc runs several compilers for one source.
_MEMORY_OF_CPP_BYTES = 2 << 30
_MEMORY_OF_CUDA_BYTES = 4 << 30
_PRELUDE = SourceFile(Path("prelude.h"), "#include <torch/extension.h>\n")


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a build.

    Attributes:
        title: The name of the build in messages.
        compilations: One for each source.
        precompiled: The header to compile first; None without one.
        device_link: The command that links device code, without its objects; None if none is needed.
        link: The command that links the objects, without them.
        link_facts: What the link depends on besides the objects.
        product: The name of the resulting file.
        installed: Folders whose headers change only when something is installed.
        directories: Where the compilers look for headers before those.
    """

    title: str
    compilations: tuple[Compilation, ...]
    precompiled: Compilation | None
    device_link: tuple[str, ...] | None
    link: tuple[tuple[str, ...], tuple[str, ...]]
    link_facts: dict[str, object]
    product: str
    installed: tuple[Path, ...]
    directories: tuple[Path, ...]

    def linked(self, objects: Sequence[Product]) -> Product:
        """Describe the file linked from these objects."""
        return product(self.product, {**self.link_facts, "objects": [each.key for each in objects]})


def make_plan(request: Request, settings: Settings) -> Plan:
    """Find the compilers and plan their commands.

    Raises:
        CompilerMissing: There is no working C++ compiler.
        ToolkitMissing: There are CUDA sources, and no toolkit or no PyTorch for them.
        ArchitectureUnknown: TORCH_CUDA_ARCH_LIST names what nvcc does not compile for.
        SourcesRefused: A source cannot be read.
    """
    compiler = find_compiler(settings)
    toolkit = toolkit_for_torch(settings) if wants_cuda(request) else None
    device_link = None if toolkit is None else _device_link(request, toolkit, settings)
    link = (compiler.command, flags.link_flags(request, toolkit))
    facts = {"link": [list(part) for part in link], "device_link": list(device_link or ()), **_linker_facts(request)}
    return Plan(
        request.name,
        _compilations(request, compiler, toolkit, settings),
        _precompiled(request, compiler, toolkit),
        device_link,
        link,
        {**facts, "compiler": compiler.version, "torch": str(torch.__version__)},
        request.name if request.kind == "program" else f"{request.name}.so",
        _installed(toolkit),
        (*_folders(request), *request.include_directories),
    )


def wants_cuda(request: Request) -> bool:
    """Whether CUDA is part of a build."""
    return request.with_cuda or any(source.language == "cuda" for source in request.sources)


def without_cuda(request: Request) -> Request:
    """Return the C++ part of a request."""
    sources = tuple(source for source in request.sources if source.language == "cpp")
    return replace(request, sources=sources, with_cuda=False, cuda_flags=(), device_link_flags=None)


def toolkit_for_torch(settings: Settings) -> CudaToolkit:
    """Return a CUDA toolkit whose objects can be linked to this PyTorch.

    Raises:
        ToolkitMissing: This PyTorch is built without CUDA, or for another major version than the toolkit's, or there is
            no toolkit.
    """
    if torch.version.cuda is None:
        raise ToolkitMissing(
            f"this PyTorch, {torch.__version__}, is built without CUDA, so CUDA sources cannot be linked to it",
            hint="install a build of PyTorch for CUDA (pytorch.org), or build the C++ part with cuda_optional=True",
        )
    toolkit = find_cuda_toolkit(settings)
    if toolkit.version.split(".")[0] != torch.version.cuda.split(".")[0]:
        raise ToolkitMissing(
            f"the CUDA toolkit at {toolkit.root} is {toolkit.version}, but PyTorch is built for {torch.version.cuda}",
            hint=f"set CUDA_HOME to a toolkit of version {torch.version.cuda}",
        )
    return toolkit


def _compilations(
    request: Request, compiler: Compiler, toolkit: CudaToolkit | None, settings: Settings
) -> tuple[Compilation, ...]:
    cpp = (*compiler.command, *flags.cpp_flags(request, toolkit))
    cuda = () if toolkit is None else (str(toolkit.nvcc), *flags.cuda_flags(request, toolkit, compiler, settings))
    versions = {"cpp": compiler.version, "cuda": f"{toolkit and toolkit.version} {compiler.version}"}
    commands = {"cpp": cpp, "cuda": cuda}
    memory = {"cpp": _MEMORY_OF_CPP_BYTES, "cuda": _MEMORY_OF_CUDA_BYTES}
    return tuple(
        compilation(source, commands[source.language], versions[source.language], f"{source.path.stem}.o", size)
        for source in request.sources
        for size in [memory[source.language]]
    )


def _device_link(request: Request, toolkit: CudaToolkit, settings: Settings) -> tuple[str, ...] | None:
    if not request.relocatable and request.device_link_flags is None:
        return None
    return (str(toolkit.nvcc), *flags.device_link_flags(request, toolkit, settings))


def _installed(toolkit: CudaToolkit | None) -> tuple[Path, ...]:
    """Return the folders whose headers change only when something is installed."""
    return (*flags.system_includes(toolkit), *SYSTEM_FOLDERS, *(() if toolkit is None else (toolkit.root,)))


def _folders(request: Request) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(source.path.parent for source in request.sources if source.text is None))


def _precompiled(request: Request, compiler: Compiler, toolkit: CudaToolkit | None) -> Compilation | None:
    """Plan the precompiled header that most sources begin with; only g++ uses it."""
    if not request.precompile or compiler.kind != "gcc":
        return None
    anonymous = replace(request, name="_")
    named = f"-DTORCH_EXTENSION_NAME={anonymous.name}"
    words = tuple(flag for flag in flags.cpp_flags(anonymous, toolkit) if flag != named)
    command = (*compiler.command, *words, "-x", "c++-header")
    return compilation(_PRELUDE, command, compiler.version, "prelude.h.gch", _MEMORY_OF_CPP_BYTES)


def _linker_facts(request: Request) -> dict[str, object]:
    """Return size and time of the libraries that a user links to, whose content may change under the same name."""
    folders = [flag.removeprefix("-L") for flag in request.link_flags if flag.startswith("-L")]
    names = [flag.removeprefix("-l") for flag in request.link_flags if flag.startswith("-l")]
    files = [flag for flag in request.link_flags if not flag.startswith("-") and os.path.isfile(flag)]
    files += [file for folder in folders for name in names for file in glob.glob(f"{folder}/lib{name}.*")]
    statuses = {file: os.stat(file) for file in sorted(files)}
    return {"linked": {file: [status.st_size, status.st_mtime_ns] for file, status in statuses.items()}}

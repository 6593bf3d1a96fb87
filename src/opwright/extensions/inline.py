"""load_inline: build sources given as texts, with generated bindings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from opwright.extensions.loading import directories, kind_of, load_request, refuse_sycl, words
from opwright.extensions.request import Request
from opwright.extensions.sources import SourceFile, check_name
from opwright.settings import Settings

_CPP_HEADERS = ("torch/extension.h",)
_CUDA_HEADERS = ("torch/types.h", "cuda.h", "cuda_runtime.h")

Texts = str | Sequence[str]
Functions = str | Sequence[str] | Mapping[str, str]


def load_inline(  # noqa: D417  (the others are those of load)
    name: str,
    cpp_sources: Texts,
    cuda_sources: Texts | None = None,
    sycl_sources: Texts | None = None,
    functions: Functions | None = None,
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
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
    *,
    gil_not_used: bool = False,
    cuda_optional: bool = False,
    settings: Settings | None = None,
) -> ModuleType | str:
    """Build C++ and CUDA sources that are given as texts, and load the result.

    The arguments are those of `torch.utils.cpp_extension.load_inline`, in the same order; those that are not
    described here are as for `opwright.load`. The C++ texts become one source, and so do the CUDA texts. Errors count
    lines by text: `cpp_sources[0]:3` is the third line of the first.

    Args:
        name: The name of the module.
        cpp_sources: C++ texts.
        cuda_sources: CUDA texts.
        sycl_sources: Not supported; here to keep the order of the arguments.
        functions: The functions of the C++ texts to bind; a mapping also gives their documentation.
        with_pytorch_error_handling: Whether errors that functions raise reach Python as PyTorch's own do.
        no_implicit_headers: Whether the texts themselves include torch/extension.h, torch/types.h and CUDA's headers.
        gil_not_used: Whether the module that binds `functions` declares that it is safe without the GIL, so that a
            free-threaded Python does not enable it. (`torch.utils.cpp_extension` has it from 2.15 on.)

    Returns:
        As `load` does.

    Raises:
        OpwrightError: As `load` does.
    """
    refuse_sycl(with_sycl, sycl_sources, extra_sycl_cflags)
    headers = not no_implicit_headers
    cpp = _joined(_CPP_HEADERS if headers else (), _listed(cpp_sources), "cpp_sources")
    cpp += _bindings(functions, with_pytorch_error_handling, gil_not_used)
    cuda = _joined(_CUDA_HEADERS if headers else (), _listed(cuda_sources), "cuda_sources")
    request = Request(
        check_name(name),
        (SourceFile(Path("main.cpp"), cpp), *([SourceFile(Path("cuda.cu"), cuda)] if cuda_sources else [])),
        kind_of(is_python_module, is_standalone=False),
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


def _listed(texts: Texts | None) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts or ())


def _joined(headers: Sequence[str], texts: Sequence[str], title: str) -> str:
    """Concatenate texts, each after a `#line` with the name that errors give."""
    includes = "".join(f"#include <{header}>\n" for header in headers)
    return includes + "".join(f'#line 1 "{title}[{index}]"\n{text}\n' for index, text in enumerate(texts))


def _bindings(functions: Functions | None, with_pytorch_error_handling: bool, gil_not_used: bool) -> str:
    """Write a pybind11 module of these functions; nothing if there are none."""
    if functions is None:
        return ""
    documented = functions if isinstance(functions, Mapping) else {each: each for each in _listed(functions)}
    wrapped = "torch::wrap_pybind_function({})" if with_pytorch_error_handling else "{}"
    lines = [
        f"  m.def({json.dumps(each)}, {wrapped.format(each)}, {json.dumps(text)});" for each, text in documented.items()
    ]
    options = ", pybind11::mod_gil_not_used()" if gil_not_used else ""
    opening = f'#line 1 "bindings of functions="\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m{options}) {{'
    return "\n".join([opening, *lines, "}", ""])

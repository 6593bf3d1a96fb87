"""The CUDA of an ejected project: a second library, built if there is an nvcc and torch has CUDA.

csrc/cuda/float32.cu          the kernels, forward and backward
csrc/cuda/float32.h           the arguments of the kernels
csrc/cuda/float32_launch.cpp  forward_float32, backward_float32: launchers, as in csrc/float32.cpp
csrc/cuda/kernels.h           declares the launchers
csrc/cuda/library.cpp         torch.ops.NAME.forward and torch.ops.NAME.backward for tensors on a GPU
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opwright.codegen.cuda.launcher import CudaPieces, emit_pieces
from opwright.codegen.cuda.program import DEVICE_HEADER, HOST_HEADER
from opwright.codegen.formula import formula_comment
from opwright.explain.format_cpp import format_cpp
from opwright.projects.files.cpp import FOLDER as CSRC
from opwright.projects.files.cpp import (
    NAMESPACE,
    adapter,
    declarations,
    opening,
    passages_of,
    programs_of_kind,
)
from opwright.projects.headers import vendored
from opwright.projects.kinds import Form, Kind

FOLDER = "cuda"
_NAMESPACE = f"{NAMESPACE}::on_gpu"
_FOUND = "reinterpret_cast<const void*>(on_gpu::{})"
_DEFINED_IN = {"Float16": "cuda/half.h", "BFloat16": "cuda/half.h", "Complex": "complex_arithmetic.h"}
_HEADERS = tuple(header.removeprefix("opwright/") for header in (DEVICE_HEADER, HOST_HEADER))


def cuda_files(name: str, origin: str, forms: Sequence[Form]) -> Mapping[str, str]:
    """Write all sources, and the headers that they include, by path; none if no kind has kernels for GPUs."""
    forms = [form for form in map(_on_gpu, forms) if form.kinds]
    if not forms:
        return {}
    sources: dict[str, str] = {}
    for kind in (kind for form in forms for kind in form.kinds):
        sources |= _sources(kind, opening(name, origin, kind))
    sources["kernels.h"] = declarations(name, forms, "cuda/launches.h")
    sources["library.cpp"] = _library(name, forms)
    formatted = {f"{CSRC}/{FOLDER}/{path}": format_cpp(text) for path, text in sources.items()}
    return formatted | {f"{CSRC}/{path}": text for path, text in vendored(_HEADERS).items()}


def _on_gpu(form: Form) -> Form:
    """A form with only the kinds that have kernels for GPUs, and their derivations for GPUs."""
    kinds = (replace(kind, derivation=kind.cuda) for kind in form.kinds if kind.cuda is not None)
    return replace(form, kinds=tuple(kinds))


def _sources(kind: Kind, remark: str) -> Mapping[str, str]:
    pieces = [emit_pieces(program, formula_comment, _FOUND) for program in programs_of_kind(kind)]
    return {
        f"{kind.label}.cu": _kernels(kind, remark, pieces),
        f"{kind.label}.h": _arguments(kind, pieces),
        f"{kind.label}_launch.cpp": _launchers(kind, remark, pieces),
    }


def _kernels(kind: Kind, remark: str, pieces: Sequence[CudaPieces]) -> str:
    body = "\n\n".join(text for piece in pieces for text in piece.kernels)
    return (
        f'{remark}\n#include "{FOLDER}/{kind.label}.h"\n\n#include "{DEVICE_HEADER}"\n\n'
        f"namespace {_NAMESPACE} {{\n\n{body}\n\n}}  // namespace {_NAMESPACE}\n"
    )


def _arguments(kind: Kind, pieces: Sequence[CudaPieces]) -> str:
    structs = "\n\n".join(text for piece in pieces for text in piece.arguments)
    entries = "\n".join(
        f'extern "C" void {version}(const {arguments} given);'
        for piece in pieces
        for version, arguments in piece.entries
    )
    return (
        f"// The arguments of the kernels in {kind.label}.cu, for host and device.\n"
        f"#pragma once\n\n{_headers_of(structs)}\n\nnamespace {_NAMESPACE} {{\n\n{structs}\n\n"
        f"#ifndef __CUDACC__  // their entry points, for the launchers\n{entries}\n#endif\n\n"
        f"}}  // namespace {_NAMESPACE}\n"
    )


def _headers_of(structs: str) -> str:
    """The headers that define the types of arguments."""
    names = ["cuda/arguments.h", *(header for word, header in _DEFINED_IN.items() if word in structs)]
    return "\n".join(f'#include "opwright/{name}"' for name in sorted(set(names)))


def _launchers(kind: Kind, remark: str, pieces: Sequence[CudaPieces]) -> str:
    types = dict.fromkeys(arguments for piece in pieces for _, arguments in piece.entries)
    known = "\n".join(f"using on_gpu::{arguments};" for arguments in types)
    body = "\n\n".join(piece.launcher for piece in pieces)
    return (
        f'{remark}\n#include "{FOLDER}/kernels.h"\n\n#include "{FOLDER}/{kind.label}.h"\n\n'
        f"namespace {NAMESPACE} {{\n\n{known}\n\n{body}\n\n}}  // namespace {NAMESPACE}\n"
    )


def _library(name: str, forms: Sequence[Form]) -> str:
    passages = [passage for form in forms for passage in passages_of(form)]
    adapters = "\n\n".join(adapter(passage, ["const cuda::Call call_on_device(given);"]) for passage in passages)
    implementations = "\n".join(f'  library.impl("{passage.name}", {passage.name});' for passage in passages)
    return (
        f"// torch calls these for tensors on a GPU, in place of those in csrc/library.cpp.\n"
        f'#include "{FOLDER}/kernels.h"\n\n#include <torch/csrc/stable/library.h>\n\n'
        f"namespace {NAMESPACE} {{\n\n{adapters}\n\n"
        f"STABLE_TORCH_LIBRARY_IMPL({name}, CUDA, library) {{\n{implementations}\n}}\n\n"
        f"}}  // namespace {NAMESPACE}\n"
    )

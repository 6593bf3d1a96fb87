"""The CUDA of an ejected optimizer: a second library, built if there is an nvcc and torch has CUDA.

csrc/cuda/float32.cu          the kernels
csrc/cuda/float32_launch.cpp  computes the numbers of a step, and launches them
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from opwright.explain.format_cpp import format_cpp
from opwright.projects.headers import vendored
from opwright.toolchain.source import Source

FOLDER = "cuda"
_HEADERS = ("cuda/table.h", "cuda/table_launch.h")
_KERNEL = re.compile(r'\{kernel_images, "(\w+)"\}')  # as codegen/cuda/table.py refers to a kernel


def cuda_files(
    project: str, sources: Sequence[Source], openings: Mapping[str, str], labels: Mapping[str, str]
) -> Mapping[str, str]:
    """Write all sources, and the headers that they include, by path below csrc.

    Args:
        project: The name of the project.
        sources: Of the kernels.
        openings: The comment lines at the top of each, by the name of the source.
        labels: What each file is called, by the name of the source.
    """
    files: dict[str, str] = {}
    for source in sources:
        files |= _files(project, source, openings[source.name], labels[source.name])
    return {**files, **(vendored(_HEADERS) if files else {})}


def name_of(project: str, label: str) -> str:
    """The operator of a source: that for the processor may have the same label."""
    return f"{project}_cuda_{label}"


def _files(project: str, source: Source, opening: str, label: str) -> Mapping[str, str]:
    assert source.device is not None
    name = name_of(project, label)
    entries = {found: f"{name}_{found.partition('_')[2]}" for found in _KERNEL.findall(source.text)}
    device, host = (_renamed(_without_header(text), entries) for text in (source.device, source.text))
    found = r'{reinterpret_cast<const void*>(\1), "\1"}'
    declared = "\n".join(f'extern "C" void {entry}(TableOnDevice given);' for entry in entries.values())
    host = _KERNEL.sub(found, host).replace(source.name, name)
    host = host.replace("namespace {\n", f"{declared}\n\nnamespace {{\n", 1)
    texts = {f"{label}.cu": device, f"{label}_launch.cpp": host}
    return {f"{FOLDER}/{path}": format_cpp(f"{opening}{text}") for path, text in texts.items()}


def _renamed(text: str, entries: Mapping[str, str]) -> str:
    """With names of kernels that no other source of the project has."""
    for old, new in entries.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text


def _without_header(text: str) -> str:
    """From the first include on."""
    return text[text.index("#include") :]

"""eject: an optimizer → a project of its own, which builds and passes its tests without opwright.

optimizer → kernels of the steps that it takes → files: C++, CUDA, the definition, what runs it, tests, a README
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pprint import pformat
from typing import Any

import torch

from opwright.deployment.wheels.carried import needed_for, with_neighbours
from opwright.errors import NotEjectable, Place, ReferenceWithoutText
from opwright.explain.format_cpp import format_cpp
from opwright.operators.reference_text import ReferenceText, reference_text, spell
from opwright.optim.kinds import Kind
from opwright.optim.shipping.ejected_cuda import cuda_files, name_of
from opwright.optim.shipping.packaged_optimizers import optimizer as packaged
from opwright.optim.shipping.planning import Kernels, kernels_of, record_on_gpu
from opwright.optim.stepping import SteppingOptimizer
from opwright.projects.directory import check_directory, check_name, write_files
from opwright.projects.headers import headers_for, vendored
from opwright.projects.templates import filled, prose
from opwright.toolchain.compiler import ROUNDING_FLAGS
from opwright.tracing.interface.place import place_of
from opwright.version import VERSION

_TEXT_HINT = "use functions of installed packages, functions defined with `def`, and plain constants"
_INCLUDE = re.compile(r'^#include "opwright/[^"]+"\n', re.MULTILINE)
_TABLE = "table.h"
_WIDTH, _PIECE = 116, 100


@dataclass(frozen=True, slots=True)
class EjectedOptimizer:
    """An ejected project.

    Attributes:
        name: The name of the package.
        directory: Where the project is.
        files: Its files, in the order of writing.
        kernels: What each of its sources is for, by the name of its file.
    """

    name: str
    directory: Path
    files: tuple[str, ...]
    kernels: Mapping[str, str]


def eject_optimizer(
    cls: type[SteppingOptimizer],
    directory: str | Path,
    dtypes: Sequence[torch.dtype],
    hyper: Mapping[str, Any],
    *,
    force: bool,
) -> EjectedOptimizer:
    """Write a self-contained project: sources, the definition, what runs it, tests, a README.

    Args:
        cls: The optimizer.
        directory: Where to write it: a new or empty directory.
        dtypes: Of the parameters that have kernels.
        hyper: Hyper-parameters other than the defaults.
        force: Whether to overwrite files in a directory that is not empty.

    Raises:
        NotEjectable: If something in it needs opwright; the message names it.
        DirectoryTaken: If the directory is not empty, or cannot be written.
        ProjectNameUnusable: If a package cannot have the optimizer's name.
    """
    target, name, place = Path(directory), cls.__name__.lower(), place_of(cls.definition.function)
    check_name(name, "give the function of the optimizer another name")
    check_directory(target, force=force)
    for each, value in hyper.items():
        if spell(value) is None:
            fact = f"{each} is of type {type(value).__name__}, which no file can name"
            raise NotEjectable(fact, place=place, hint="give a number, a string, a bool, or a tuple of these")
    definition = _definition(cls)
    kernels = kernels_of(cls, dtypes, hyper)
    labels = _labels(
        (kind, variant.name, not variant.one_by_one)
        for kind, variants in kernels.by_kind.items()
        for variant in variants
    )
    on_gpus = _labels((kind, derived.source.name, True) for kind, derived in kernels.on_gpus)
    files = _files(_Subject(cls, name, _origin(cls, place), dict(hyper), dtypes, definition, kernels, labels, on_gpus))
    write_files(target, files)
    return EjectedOptimizer(name, target, tuple(files), dict(labels.values()))


@dataclass(frozen=True, slots=True)
class _Subject:
    cls: type[SteppingOptimizer]
    name: str
    origin: str
    hyper: Mapping[str, Any]
    dtypes: Sequence[torch.dtype]
    definition: ReferenceText
    kernels: Kernels
    labels: Mapping[str, tuple[str, str]]
    on_gpus: Mapping[str, tuple[str, str]]


def _definition(cls: type[SteppingOptimizer]) -> ReferenceText:
    function = cls.definition.function
    try:
        return reference_text([], with_packages=True, decorated=[function], decorator=packaged)
    except ReferenceWithoutText as refusal:
        fact = f"{refusal.fact}, so a project cannot include it"
        raise NotEjectable(fact, place=refusal.place, hint=refusal.hint or _TEXT_HINT) from refusal


def _origin(cls: type[SteppingOptimizer], place: Place) -> str:
    return f"Written by opwright {VERSION} from {cls.__qualname__} at {Path(place.file).name}:{place.line}."


def _labels(kernels: Iterable[tuple[Kind, str, bool]]) -> dict[str, tuple[str, str]]:
    """For each source, by its name: what its file is called, and what it is for.

    Args:
        kernels: For each, a kind that it serves, its name, and whether it is for all parameters together.
    """
    labels: dict[str, tuple[str, str]] = {}
    taken: dict[str, int] = {}
    for kind, name, together in kernels:
        if name not in labels:
            words, what = _described(kind, together=together)
            label = "_".join(words)
            taken[label] = taken.get(label, 0) + 1
            suffix = f"_{taken[label]}" if taken[label] > 1 else ""
            labels[name] = f"{label}{suffix}", what
    return labels


def _described(kind: Kind, *, together: bool) -> tuple[list[str], str]:
    """What a kernel is called, and what it is for."""
    dtype = str(kind.param).removeprefix("torch.")
    words = [dtype, *(["unscaled"] if kind.written else ["scaled"] if kind.scaled else [])]
    what = f"all parameters of {dtype}" if together else f"one parameter of {dtype}"
    if kind.written:
        what += ", with gradients that are unscaled and written back"
    elif kind.scaled:
        what += ", with gradients that are clipped"
    return [*words, *([] if together else ["single"])], what


def _files(subject: _Subject) -> dict[str, str]:
    name, class_name = subject.name, subject.cls.__name__
    runtime = needed_for(packaged.__module__)
    text = subject.definition.text(f"{class_name} as it was defined: what its kernels are held against.")
    default = str(torch.get_default_dtype()).removeprefix("torch.")
    words = {"name": name, "class_name": class_name, "origin": subject.origin}
    words["default"] = "" if default == "float32" else f', default_dtype="{default}"'
    python = {
        f"{name}/__init__.py": filled("ejected_optimizer", "package.py", **words),
        f"{name}/definition.py": with_neighbours(text, ".runtime."),
        f"{name}/built.py": _built(subject),
        f"{name}/kernels.py": filled("ejected", "kernels.py", name=name),
        f"{name}/runtime/__init__.py": '"""What PyTorch asks of an optimizer, around the update in `definition`."""\n',
        **{f"{name}/runtime/{file}": module for file, module in runtime.items()},
    }
    tests = {
        f"tests/test_{name}.py": filled(
            "ejected_optimizer",
            "test_optimizer.py",
            name=name,
            class_name=class_name,
            hyper=pformat(dict(subject.hyper), width=_WIDTH),
            shapes=pformat(list(subject.kernels.shapes), width=_WIDTH, compact=True),
            dtypes=", ".join(map(str, subject.dtypes)),
        )
    }
    flags = [*ROUNDING_FLAGS, f'-DOPWRIGHT_NAMESPACE="{name}_kernels"']
    build = {
        "setup.py": filled("ejected", "setup.py", name=name, flags="\n".join(f"    {flag!r}," for flag in flags)),
        "pyproject.toml": filled(
            "ejected",
            "pyproject.toml",
            name=name,
            dependencies=", ".join(f'"{each}"' for each in ("torch>=2.11", *sorted(subject.definition.packages))),
            packages=f'"{name}", "{name}.runtime"',
            what="optimizer",
        ),
        ".gitignore": filled("ejected", "gitignore"),
    }
    facts = {
        **words,
        "hyper": next(iter(subject.cls.definition.hyper), ""),
        "definition": subject.definition.functions[class_name],
        "kernels": list(subject.labels.values()),
        "on_gpus": list(subject.on_gpus.values()),
        "lines": sum(len(module.splitlines()) for module in runtime.values()),
        "constants": ", ".join(
            f"`{each}`" for each in dict.fromkeys(n for kind in subject.kernels.by_kind for n, _ in kind.constants)
        ),
    }
    return {
        "README.md": prose("ejected_optimizer", "README.md", facts), **build, **python, **_sources(subject), **tests,
    }  # fmt: skip


def _sources(subject: _Subject) -> dict[str, str]:
    on_gpus = {derived.source.name: derived.source for _, derived in subject.kernels.on_gpus}
    openings = {name: _opening(subject, f"{what}, on a GPU") for name, (_, what) in subject.on_gpus.items()}
    labels = {name: label for name, (label, _) in subject.on_gpus.items()}
    cuda = cuda_files(subject.name, tuple(on_gpus.values()), openings, labels)
    sources, headers = {f"csrc/{path}": text for path, text in cuda.items()}, set[str]()
    for source in subject.kernels.sources:
        label, what = subject.labels[source.name]
        used = (_TABLE,) if f'"opwright/{_TABLE}"' in source.text else headers_for(source.text)
        headers.update(used)
        includes = "".join(f'#include "opwright/{header}"\n' for header in used)
        text = _INCLUDE.sub("", source.text).replace(source.name, f"{subject.name}_{label}")
        body = text.partition("namespace opwright")[1:]
        opening = _opening(subject, what)
        sources[f"csrc/{label}.cpp"] = format_cpp(f"{opening}{includes}\n{''.join(body)}")
    return {**sources, **{f"csrc/{path}": text for path, text in vendored(tuple(sorted(headers))).items()}}


def _opening(subject: _Subject, what: str) -> str:
    return f"// {subject.cls.__name__} of {what}.\n// {subject.origin}\n"


def _built(subject: _Subject) -> str:
    """Which kernels there are, as Python."""
    records = {
        kind: [{**record, "name": f"{subject.name}_{subject.labels[record['name']][0]}"} for record in of_kind]
        for kind, of_kind in subject.kernels.records().items()
    }
    for kind, derived in subject.kernels.on_gpus:
        name = name_of(subject.name, subject.on_gpus[derived.source.name][0])
        records.setdefault(repr(replace(kind, device="cuda")), []).append(record_on_gpu(derived, name))
    lines = [line for kind, of_kind in records.items() for line in _of_kind(kind, of_kind)]
    opening = '"""For each kind of parameters, the kernels that may serve it, and what they are given."""'
    return "\n".join([opening, "", "KERNELS = {", *lines, "}", ""])


def _of_kind(kind: str, records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "    ("
    yield from (f"        {piece!r}" for piece in _pieces(kind))
    yield "    ): ["
    for record in records:
        yield "        {"
        yield from (f"            {name!r}: {value!r}," for name, value in record.items())
        yield "        },"
    yield "    ],"


def _pieces(text: str) -> list[str]:
    """A text in pieces that fit on lines, cut behind spaces."""
    pieces = [""]
    for word in re.findall(r"\S+\s*", text):
        if len(pieces[-1]) + len(word) > _PIECE:
            pieces.append("")
        pieces[-1] += word
    return pieces

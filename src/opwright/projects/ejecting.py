"""eject: operator → a stand-alone project, which builds and passes its tests without opwright.

operator → kinds of arguments → forms → files: C++, Python, tests, a README
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from opwright.errors import NotEjectable, ReferenceWithoutText
from opwright.explain.origin import place_from_here
from opwright.operators.reference_text import ReferenceText, reference_text
from opwright.projects.directory import check_directory, check_name, write_files
from opwright.projects.files.arguments import SampleSource, sample_files
from opwright.projects.files.cpp import cpp_files
from opwright.projects.files.cuda import cuda_files
from opwright.projects.files.functions import function_module
from opwright.projects.files.modules import module_module, module_parts
from opwright.projects.files.parameters import class_stem, parameters_of
from opwright.projects.files.readme import readme
from opwright.projects.kinds import Form, Kind, LeftOut, forms_of, kinds_of, refuse_options, serves
from opwright.projects.subject import Subject
from opwright.projects.templates import filled
from opwright.samples import DEFAULT_DTYPES
from opwright.toolchain.compiler import ROUNDING_FLAGS
from opwright.tracing.interface.signature import place_of
from opwright.version import VERSION

if TYPE_CHECKING:
    from opwright.operators.base import BaseOperator

_TEXT_HINT = "use functions of installed packages, functions defined with `def`, and plain constants"
_HINT = 'give the operator another name: @opwright.operator(name="…")'


@dataclass(frozen=True, slots=True)
class Ejected:
    """An ejected project.

    Attributes:
        name: The name of the operator, and of the package.
        directory: Where the project is.
        files: Its files, in the order of writing.
        kinds: The kinds of arguments that have kernels.
        left_out: Samples that have no kernel, and why.
    """

    name: str
    directory: Path
    files: tuple[str, ...]
    kinds: tuple[Kind, ...]
    left_out: tuple[LeftOut, ...]


def eject(
    operator: BaseOperator,
    directory: str | Path,
    *,
    dtypes: Sequence[torch.dtype] = DEFAULT_DTYPES,
    force: bool = False,
) -> Ejected:
    """Write a self-contained project: sources, an `autograd.Function`, a module, tests, a README.

    Kernels serve calls like the samples, in every requested dtype; the reference serves all others.

    Args:
        operator: An operator with samples.
        directory: Where to write it: a new or empty directory.
        dtypes: The dtypes to make samples of, and so kernels for.
        force: Whether to overwrite files in a directory that is not empty.

    Raises:
        SamplesMissing: If the operator has no samples.
        NotEjectable: If something in it needs opwright; the message names it.
        DirectoryTaken: If the directory is not empty, or cannot be written.
        ProjectNameUnusable: If a package cannot have the operator's name.
    """
    target = Path(directory)
    subject = _subject(operator, tuple(dict.fromkeys(dtypes)), lambda: check_directory(target, force=force))
    try:
        files = _files(subject)
    except NotEjectable as refusal:
        raise refusal.again(place_of(operator.reference)) from None
    write_files(target, files)
    return Ejected(subject.name, target, tuple(files), subject.kinds, subject.left_out)


def _subject(operator: BaseOperator, dtypes: tuple[torch.dtype, ...], check: Callable[[], None]) -> Subject:
    """Make the cheap tests first, then derive."""
    name = operator.name.partition("::")[2]
    check_name(name, _HINT)
    check()
    refuse_options(operator)
    parameters = parameters_of(operator.reference)
    try:
        reference = reference_text([operator.reference], with_packages=True)
    except ReferenceWithoutText as refusal:
        fact = f"{refusal.fact}, so a project cannot include it"
        raise NotEjectable(fact, place=refusal.place, hint=refusal.hint or _TEXT_HINT) from refusal
    kinds, left_out = kinds_of(operator, dtypes)
    place = place_from_here(operator)
    origin = (
        f"Written by opwright {VERSION} from {operator.reference.__qualname__} at {Path(place.file).name}:{place.line}."
    )
    forms = forms_of(kinds, parameters.signature)
    return Subject(name, origin, operator, parameters, reference, dtypes, kinds, forms, left_out)


def _files(subject: Subject) -> Mapping[str, str | bytes]:
    name = subject.name
    parts = module_parts(subject.parameters, subject.operator.samples)
    python = {
        f"{name}/__init__.py": _package(subject),
        f"{name}/function.py": function_module(name, subject.forms, subject.parameters),
        f"{name}/module.py": module_module(name, subject.parameters, parts),
        f"{name}/reference.py": _reference(subject),
        f"{name}/kernels.py": filled("ejected", "kernels.py", name=name),
    }
    source = SampleSource(
        subject.operator.samples,
        subject.parameters.signature,
        subject.dtypes,
        lambda sample: any(serves(kind, sample) for kind in subject.kinds),
    )
    tests = {
        f"tests/test_{name}.py": filled("ejected", "test_operator.py", name=name),
        **sample_files(name, source, subject.parameters),
    }
    build = {
        "setup.py": filled("ejected", "setup.py", name=name, flags=_flags()),
        "pyproject.toml": filled(
            "ejected",
            "pyproject.toml",
            name=name,
            dependencies=_dependencies(subject.reference),
            packages=f'"{name}"',
            what="operator",
        ),
        ".gitignore": filled("ejected", "gitignore"),
    }
    sources = {
        path: text for rung in RUNGS.values() for path, text in rung(name, subject.origin, subject.forms).items()
    }
    return {"README.md": readme(subject), **build, **python, **sources, **tests}


# The function that writes the sources of each rung.
RUNGS: Mapping[str, Callable[[str, str, Sequence[Form]], Mapping[str, str]]] = {"cpp": cpp_files, "cuda": cuda_files}


def _package(subject: Subject) -> str:
    name, stem = subject.name, class_stem(subject.name)
    return (
        f'"""{name}: a PyTorch operator with kernels of its own.\n\n{subject.origin}\n"""\n\n'
        f"from {name}.function import {name}\nfrom {name}.module import {stem}\n\n"
        f'__all__ = ["{stem}", "{name}"]\n'
    )


def _reference(subject: Subject) -> str:
    text = subject.reference.text(f"{subject.name} as it was defined: what its kernels are held against.")
    own = subject.operator.reference.__name__
    return text if own == subject.name else f"{text}\n\n{subject.name} = {own}\n"


def _dependencies(reference: ReferenceText) -> str:
    return ", ".join(f'"{package}"' for package in ("torch>=2.11", *sorted(reference.packages)))


def _flags() -> str:
    return "\n".join(f'    "{flag}",' for flag in ROUNDING_FLAGS)

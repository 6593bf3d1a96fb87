"""opwright eject: write the sources of an operator, or of an optimizer, as a self-contained project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from opwright.cli.arguments import DEFAULT, AsJson, Dtypes, Target, dtypes_named
from opwright.cli.load import load_shipped
from opwright.cli.terminal import progress_on_stderr, write_either
from opwright.errors import OperatorNotFound
from opwright.optim import DerivedOptimizer
from opwright.optim.shipping.ejecting import EjectedOptimizer
from opwright.projects import Ejected, eject
from opwright.projects.kinds import describe_sample


def eject_command(
    target: Target,
    to: Annotated[Path, typer.Option(metavar="DIR", help="A new or empty directory.")],
    dtype: Dtypes = DEFAULT,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files in a directory that is not empty.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write an operator's sources, tests and README as a project that builds and runs without opwright."""
    operator = _only_one(target)
    if isinstance(operator, type):
        made = operator.eject(to, dtypes=dtypes_named(dtype), force=force)  # type: ignore[attr-defined]
        write_either(as_json, _optimizer_as_json(made), "\n".join(_optimizer_lines(made)))
        return
    with progress_on_stderr(operator.name):
        ejected = eject(operator, to, dtypes=dtypes_named(dtype), force=force)
    write_either(as_json, _as_json(ejected), "\n".join(_lines(ejected)))


def _only_one(target: str) -> Any:
    found = load_shipped(target)
    if len(found) != 1:
        names = ", ".join(each.__name__ if isinstance(each, type) else each.reference.__name__ for each in found)
        raise OperatorNotFound(f"{target} has {names}", hint="name one of them: FILE:NAME")
    if isinstance(found[0], DerivedOptimizer):
        raise OperatorNotFound(f"{target} is an optimizer of some parameters", hint="name its class")
    return found[0]


def _as_json(ejected: Ejected) -> dict[str, Any]:
    return {
        "operator": ejected.name,
        "directory": str(ejected.directory),
        "files": list(ejected.files),
        "kernels": {kind.label: describe_sample(kind.sample) for kind in ejected.kinds},
        "left_to_the_reference": {each.sample: each.reason for each in ejected.left_out},
    }


def _optimizer_as_json(ejected: EjectedOptimizer) -> dict[str, Any]:
    return {
        "optimizer": ejected.name,
        "directory": str(ejected.directory),
        "files": list(ejected.files),
        "kernels": dict(ejected.kernels),
    }


def _optimizer_lines(ejected: EjectedOptimizer) -> list[str]:
    kernels = [f"  kernels {label}: the update of {what}" for label, what in ejected.kernels.items()]
    return [f"{ejected.directory}: {len(ejected.files)} files", *kernels, *_next(ejected.directory)]


def _next(directory: Path) -> list[str]:
    return ["Next:", f"  cd {directory}", "  python setup.py build_ext --inplace", "  python -m pytest"]


def _lines(ejected: Ejected) -> list[str]:
    kernels = [f"  kernels {kind.label}: {describe_sample(kind.sample)}" for kind in ejected.kinds]
    left = [f"  left to the reference: {each.sample}: {each.reason}" for each in ejected.left_out]
    return [f"{ejected.directory}: {len(ejected.files)} files", *kernels, *left, *_next(ejected.directory)]

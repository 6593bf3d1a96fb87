"""opwright eject: write an operator's sources as a self-contained project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from opwright.cli.arguments import DEFAULT, AsJson, Dtypes, Target, dtypes_named
from opwright.cli.load import load_operators
from opwright.cli.terminal import progress_on_stderr, write_either
from opwright.errors import OperatorNotFound
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
    with progress_on_stderr(operator.name):
        ejected = eject(operator, to, dtypes=dtypes_named(dtype), force=force)
    write_either(as_json, _as_json(ejected), "\n".join(_lines(ejected)))


def _only_one(target: str) -> Any:
    operators: list[Any] = list(load_operators(target))
    if len(operators) != 1:
        names = ", ".join(operator.reference.__name__ for operator in operators)
        raise OperatorNotFound(f"{target} has the operators {names}", hint="name one of them: FILE:NAME")
    return operators[0]


def _as_json(ejected: Ejected) -> dict[str, Any]:
    return {
        "operator": ejected.name,
        "directory": str(ejected.directory),
        "files": list(ejected.files),
        "kernels": {kind.label: describe_sample(kind.sample) for kind in ejected.kinds},
        "left_to_the_reference": {each.sample: each.reason for each in ejected.left_out},
    }


def _lines(ejected: Ejected) -> list[str]:
    kernels = [f"  kernels {kind.label}: {describe_sample(kind.sample)}" for kind in ejected.kinds]
    left = [f"  left to the reference: {each.sample}: {each.reason}" for each in ejected.left_out]
    commands = [f"  cd {ejected.directory}", "  python setup.py build_ext --inplace", "  python -m pytest"]
    return [f"{ejected.directory}: {len(ejected.files)} files", *kernels, *left, "Next:", *commands]

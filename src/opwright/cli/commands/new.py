"""opwright new: start a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opwright.cli.arguments import AsJson
from opwright.cli.terminal import write_either
from opwright.projects import new_project

_SHOWN = "{directory}: {count} files. Next:\n  cd {directory}\n  pip install -e '.[test]'\n  make test"


def new_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the package and its operator.")],
    to: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to write it; by default NAME.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files in a directory that is not empty.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a project: an operator with samples, tests and a README."""
    directory, files = new_project(name, to, force=force)
    made = {"name": name, "directory": str(directory), "files": list(files)}
    write_either(as_json, made, _SHOWN.format(directory=directory, count=len(files)))

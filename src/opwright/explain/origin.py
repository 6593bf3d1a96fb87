"""Where an operator comes from: a file and line, or a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opwright.codegen.header import source_command as shown_by
from opwright.errors import Place
from opwright.tracing.interface.signature import place_of

if TYPE_CHECKING:
    from opwright.operators.base import BaseOperator


def place_from_here(operator: BaseOperator) -> Place:
    """The file and line of the reference; the path is relative if the file is below the working directory."""
    place = place_of(operator.reference)
    file, here = Path(place.file), Path.cwd()
    return Place(str(file.relative_to(here)), place.line) if file.is_relative_to(here) else place


def source_command(operator: BaseOperator, rung: str) -> str | None:
    """The command that shows a source; None if the command line cannot find the operator."""
    file, name = place_from_here(operator).file, operator.reference.__qualname__
    return shown_by(file, name, rung) if Path(file).is_file() else None

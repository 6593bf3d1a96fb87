"""opwright doctor: what works on this machine, and how to fix what does not."""

from __future__ import annotations

import typer

from opwright.cli.arguments import AsJson
from opwright.cli.terminal import progress_on_stderr, write_json, write_table
from opwright.doctor import examine
from opwright.report.doctor_table import doctor_table


def doctor_command(as_json: AsJson = False) -> None:
    """Test compilers, PyTorch, CUDA and the cache. Exit code 1 if something that opwright needs does not work."""
    with progress_on_stderr("doctor") as tell:
        examination = examine(progress=tell).to_json()
    if as_json:
        write_json(examination)
    else:
        write_table(doctor_table(examination))
    if not examination["passed"]:
        raise typer.Exit(1)

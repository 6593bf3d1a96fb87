"""opwright check: judge operators."""

from __future__ import annotations

import typer

from opwright.checking import Verdict, check
from opwright.checking.subject import OperatorLike
from opwright.cli.arguments import AsJson, Device, Target
from opwright.cli.load import load_operators
from opwright.cli.terminal import progress_on_stderr, write_json, write_table
from opwright.report import verdict_table


def check_command(target: Target, as_json: AsJson = False, device: Device = "cpu") -> None:
    """Check operators against the functions they were made from. Exit code 1 if one is wrong."""
    verdicts = [_verdict(operator, device).to_json() for operator in load_operators(target)]
    if as_json:
        write_json(verdicts)
    else:
        for verdict in verdicts:
            write_table(verdict_table(verdict))
    if not all(verdict["passed"] for verdict in verdicts):
        raise typer.Exit(1)


def _verdict(operator: OperatorLike, device: str) -> Verdict:
    with progress_on_stderr(operator.name) as tell:
        return check(operator, device=device, progress=tell)

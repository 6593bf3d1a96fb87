"""opwright check: judge operators."""

from __future__ import annotations

from typing import Annotated

import typer

from opwright.checking import Verdict, check
from opwright.checking.subject import OperatorLike
from opwright.cli.arguments import AsJson, Device, Target
from opwright.cli.load import load_operators
from opwright.cli.sanitizer import Sanitizer, run_under
from opwright.cli.terminal import progress_on_stderr, write_json, write_table
from opwright.report import verdict_table
from opwright.settings import Settings

UnderSanitizer = Annotated[Sanitizer | None, typer.Option(help="Watch the kernels with NVIDIA's compute-sanitizer.")]


def check_command(
    target: Target, as_json: AsJson = False, device: Device = "cpu", sanitizer: UnderSanitizer = None
) -> None:
    """Check operators against the functions they were made from. Exit code 1 if one is wrong."""
    if sanitizer is not None:
        again = ["check", target, "--device", device, *(["--json"] if as_json else [])]
        raise typer.Exit(run_under(sanitizer, again, Settings.from_environment()))
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

"""main: the command line as a whole.

Exit codes: 0 everything passed, 1 something is wrong, 2 the command could not run.
"""

from __future__ import annotations

from collections.abc import Sequence

import typer

from opwright.cli.commands.audit import audit_command
from opwright.cli.commands.bench import bench_command
from opwright.cli.commands.build import build_command
from opwright.cli.commands.check import check_command
from opwright.cli.commands.doctor import doctor_command
from opwright.cli.commands.eject import eject_command
from opwright.cli.commands.explain import explain_command
from opwright.cli.commands.new import new_command
from opwright.cli.commands.source import source_command
from opwright.cli.terminal import say_refusal
from opwright.errors import OpwrightError

COULD_NOT_RUN = 2

app = typer.Typer(
    name="opwright",
    help="From a PyTorch function to a fused, differentiable, checked operator.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("check")(check_command)
app.command("audit")(audit_command)
app.command("bench")(bench_command)
app.command("explain")(explain_command)
app.command("source")(source_command)
app.command("doctor")(doctor_command)
app.command("eject")(eject_command)
app.command("new")(new_command)
app.command("build")(build_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit.

    Args:
        arguments: What follows the program's name; None for those of this process.

    Raises:
        SystemExit: Always; with the exit code.
    """
    try:
        app(arguments)
    except OpwrightError as refusal:
        say_refusal(refusal)
        raise SystemExit(COULD_NOT_RUN) from None

"""main: the command line as a whole.

Exit codes: 0 all is well, 1 something was found wrong, 2 opwright was used wrong, 3 opwright itself failed, 130 it was
interrupted, and has ended the processes that it started.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from opwright.binding.native import native
from opwright.cli.commands.audit import audit_command
from opwright.cli.commands.bench import bench_command
from opwright.cli.commands.build import build_command
from opwright.cli.commands.cache import cache_commands
from opwright.cli.commands.check import check_command
from opwright.cli.commands.coverage import coverage_command
from opwright.cli.commands.deploy import deploy_command
from opwright.cli.commands.doctor import doctor_command
from opwright.cli.commands.eject import eject_command
from opwright.cli.commands.explain import explain_command
from opwright.cli.commands.new import new_command
from opwright.cli.commands.report import report_command
from opwright.cli.commands.source import source_command
from opwright.cli.side_by_side import Invocation
from opwright.cli.terminal import say_refusal, write_text
from opwright.errors import Fault, OpwrightError
from opwright.tracing.recording.faults import line_of_ours, summary
from opwright.version import VERSION

USED_WRONG = 2
FAILED = 3
INTERRUPTED = 130  # what typer makes of Ctrl-C

app = typer.Typer(
    name="opwright",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("check")(check_command)
app.command("audit")(audit_command)
app.command("bench")(bench_command)
app.command("coverage")(coverage_command)
app.command("explain")(explain_command)
app.command("report")(report_command)
app.command("source")(source_command)
app.command("doctor")(doctor_command)
app.command("eject")(eject_command)
app.command("new")(new_command)
app.command("build")(build_command)
app.command("deploy")(deploy_command)
app.add_typer(cache_commands, name="cache")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit.

    Args:
        arguments: What follows the program's name; None for those of this process.

    Raises:
        SystemExit: Always; with the exit code.
    """
    try:
        app(arguments, obj=Invocation(may_fork=arguments is None))
    except SystemExit as end:
        if end.code == INTERRUPTED:
            native.abandon()
        raise
    except Fault as fault:
        _say_fault(fault.fact, fault)
    except OpwrightError as refusal:
        say_refusal(refusal)
        raise SystemExit(USED_WRONG) from None
    except OSError as error:  # such as a folder without write permission
        say_refusal(OpwrightError(str(error)))
        raise SystemExit(USED_WRONG) from None
    except Exception as error:
        place = line_of_ours(error)
        _say_fault(f"opwright failed with {summary(error)}" + (f" at {place}" if place else ""), error)
    raise SystemExit(FAILED)


def _version(wanted: bool) -> None:
    if wanted:
        write_text(f"opwright {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """From a PyTorch function to a fused, differentiable, checked operator."""


def _say_fault(fact: str, error: Exception) -> None:
    """Report an unexpected error in one sentence, with the file that has its traceback."""
    trace = "".join(traceback.format_exception(error))
    with tempfile.NamedTemporaryFile("w", prefix="opwright-", suffix=".txt", encoding="utf-8", delete=False) as file:
        file.write(trace)
    say_refusal(OpwrightError(fact, hint=f"please report it, with the traceback in {file.name}"))

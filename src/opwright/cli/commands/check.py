"""opwright check: test operators against their functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from opwright.api.operator import Operator
from opwright.checking import Verdict, check
from opwright.cli.arguments import DEFAULT, AsJson, Device, Dtypes, Part, Target, checked_part, dtypes_named
from opwright.cli.load import load_operators
from opwright.cli.sanitizer import Sanitizer, run_under
from opwright.cli.terminal import progress_on_stderr, write_judged
from opwright.report.verdict_table import verdict_table
from opwright.settings import Settings

UnderSanitizer = Annotated[Sanitizer | None, typer.Option(help="Run the kernels under NVIDIA's compute-sanitizer.")]


def check_command(
    target: Target,
    as_json: AsJson = False,
    device: Device = "cpu",
    dtype: Dtypes = DEFAULT,
    only: Annotated[list[str] | None, typer.Option(help="Checks whose name contains this; may be repeated.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only checks that need few builds, on a small sample.")
    ] = False,
    part: Part = "",
    sanitizer: UnderSanitizer = None,
) -> None:
    """Test operators against their functions. Exit code 1 if one is wrong."""
    if sanitizer is not None:
        again = ["check", target, "--device", device, *(f"--dtype={name}" for name in dtype)]
        again += [*(f"--only={text}" for text in only or ()), *["--quick"] * quick, *["--json"] * as_json]
        again += ["--part", part] if part else []
        raise typer.Exit(run_under(sanitizer, again, Settings.from_environment()))
    options = {"device": device, "dtypes": dtypes_named(dtype), "only": tuple(only or ()), "quick": quick}
    options["part"] = checked_part(part)
    verdicts = [_verdict(operator, options).to_json() for operator in load_operators(target)]
    write_judged(verdicts, verdict_table, as_json=as_json)


def _verdict(operator: Operator, options: Mapping[str, Any]) -> Verdict:
    with progress_on_stderr(operator.name) as tell:
        return check(operator, progress=tell, **options)

"""opwright check: test operators against their functions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from opwright.checking import Verdict, check
from opwright.checking.verdict import together
from opwright.cli.arguments import DEFAULT, AsJson, Device, Dtypes, Part, Target, checked_part, dtypes_named
from opwright.cli.load import load_operators
from opwright.cli.sanitizer import Sanitizer, run_under
from opwright.cli.side_by_side import by_subject, parts_of, titled, whole, workers
from opwright.cli.terminal import write_judged
from opwright.report.verdict_table import verdict_table
from opwright.samples import Progress
from opwright.settings import Settings

UnderSanitizer = Annotated[Sanitizer | None, typer.Option(help="Run the kernels under NVIDIA's compute-sanitizer.")]


def check_command(
    context: typer.Context,
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
    options: dict[str, Any] = {"device": device, "dtypes": dtypes_named(dtype), "only": tuple(only or ())}
    options["quick"] = quick
    given = checked_part(part)

    def judged(part: str, tell: Progress) -> list[Any]:
        operators = load_operators(target)
        return [
            check(each, progress=titled(tell, each.name), part=part or given, **options).to_json() for each in operators
        ]

    found = by_subject(parts_of(workers(context, device, given), judged))
    write_judged([whole(parts, Verdict.from_json, together) for parts in found], verdict_table, as_json=as_json)

"""opwright coverage: try every function of PyTorch with a type that acts like a tensor."""

from __future__ import annotations

from typing import Annotated

import typer

from opwright.cli.arguments import AsJson
from opwright.cli.load import load_type
from opwright.cli.terminal import write_judged, write_text
from opwright.report.coverage_table import coverage_table
from opwright.tensors.covering import coverage


def coverage_command(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="FILE:TYPE or package.module:TYPE.")],
    as_json: AsJson = False,
    samples: Annotated[
        str,
        typer.Option(help="The name, in the file, of a list of objects of the type, or of a function that makes it."),
    ] = "samples",
    only: Annotated[
        list[str] | None, typer.Option(help='A family of functions, such as "add"; may be repeated.')
    ] = None,
    isolate: Annotated[
        bool, typer.Option(help="Call functions in a forked process, for types that end the process in some.")
    ] = False,
    page: Annotated[bool, typer.Option(help="Write a page in Markdown instead of a table.")] = False,
) -> None:
    """Tell which functions a type handles, fails and gets wrong. Exit code 1 if one is wrong or disagrees.

    Every spelling of every overridable function is called with the first sample, on either side of a tensor, and
    compared with what the dense tensor gives.
    """
    type_, objects = load_type(target, samples)
    report = coverage(type_, objects, only=tuple(only or ()), isolate=isolate)
    if page and not as_json:
        write_text(report.page())
        raise typer.Exit(0 if report.passed else 1)
    write_judged([report.to_dict()], coverage_table, as_json=as_json)

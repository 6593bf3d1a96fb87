"""opwright bench: time operators."""

from __future__ import annotations

from typing import Annotated

import torch
import typer

from opwright.benchmark import BenchReport, bench
from opwright.checking.subject import OperatorLike
from opwright.cli.arguments import AsJson, Device, Target, dtype_named
from opwright.cli.load import load_operators
from opwright.cli.terminal import progress_on_stderr, write_json, write_table
from opwright.report.bench_table import bench_table


def bench_command(
    target: Target,
    as_json: AsJson = False,
    device: Device = "cpu",
    dtype: Annotated[str, typer.Option(help="The dtype of the tensors.")] = "float32",
    compile: Annotated[bool, typer.Option(help="Let torch.compile take part.")] = True,
) -> None:
    """Time the rungs of operators beside eager and torch.compile. Exit code 1 if a result is wrong."""
    kind = dtype_named(dtype)
    reports = [_report(operator, kind, device, compile).to_json() for operator in load_operators(target)]
    if as_json:
        write_json(reports)
    else:
        for report in reports:
            write_table(bench_table(report))
    if not all(report["passed"] for report in reports):
        raise typer.Exit(1)


def _report(operator: OperatorLike, dtype: torch.dtype, device: str, compile: bool) -> BenchReport:
    with progress_on_stderr(operator.name) as tell:
        return bench(operator, dtype=dtype, device=device, compile=compile, progress=tell)

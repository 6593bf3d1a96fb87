"""opwright bench: time operators."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from opwright.benchmark import BenchReport, bench
from opwright.benchmark.ahead import build_ahead
from opwright.cli.arguments import AsJson, Device, Target, dtype_named
from opwright.cli.load import load_operators
from opwright.cli.side_by_side import ahead_by_parts, titled, workers
from opwright.cli.terminal import progress_on_stderr, write_judged
from opwright.report.bench_table import bench_table
from opwright.samples import Progress


def bench_command(
    context: typer.Context,
    target: Target,
    as_json: AsJson = False,
    device: Device = "cpu",
    dtype: Annotated[str, typer.Option(help="The dtype of the tensors.")] = "float32",
    compile: Annotated[bool, typer.Option(help="Include torch.compile.")] = True,
) -> None:
    """Time the rungs of operators, eager and torch.compile. Exit code 1 if a result is wrong."""
    options: dict[str, Any] = {"dtype": dtype_named(dtype), "device": device, "compile": compile}

    def build(part: str, tell: Progress) -> None:
        for operator in load_operators(target):
            build_ahead(operator, part, titled(tell, operator.name), **options)

    ahead_by_parts(workers(context, device), build)
    reports: list[BenchReport] = []
    with progress_on_stderr() as tell:
        for operator in load_operators(target):
            reports.append(bench(operator, progress=titled(tell, operator.name), **options))
    write_judged([report.to_json() for report in reports], bench_table, as_json=as_json)

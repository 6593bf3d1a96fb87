"""opwright bench: time operators."""

from __future__ import annotations

from typing import Annotated

import torch
import typer

from opwright.api.operator import Operator
from opwright.benchmark import BenchReport, bench
from opwright.cli.arguments import AsJson, Device, Target, dtype_named
from opwright.cli.load import load_operators
from opwright.cli.terminal import progress_on_stderr, write_judged
from opwright.report.bench_table import bench_table


def bench_command(
    target: Target,
    as_json: AsJson = False,
    device: Device = "cpu",
    dtype: Annotated[str, typer.Option(help="The dtype of the tensors.")] = "float32",
    compile: Annotated[bool, typer.Option(help="Include torch.compile.")] = True,
) -> None:
    """Time the rungs of operators, eager and torch.compile. Exit code 1 if a result is wrong."""
    kind = dtype_named(dtype)
    reports = [_report(operator, kind, device, compile).to_json() for operator in load_operators(target)]
    write_judged(reports, bench_table, as_json=as_json)


def _report(operator: Operator, dtype: torch.dtype, device: str, compile: bool) -> BenchReport:
    with progress_on_stderr(operator.name) as tell:
        return bench(operator, dtype=dtype, device=device, compile=compile, progress=tell)

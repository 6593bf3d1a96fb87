"""opwright audit: test operators under PyTorch's transforms, modes and tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from opwright.auditing import Scorecard, audit
from opwright.cli.arguments import AsJson, Device, Part, Target, checked_part, dtype_named
from opwright.cli.load import Loaded, load_subjects
from opwright.cli.terminal import progress_on_stderr, write_judged
from opwright.report.audit_table import audit_table


def audit_command(
    target: Target,
    as_json: AsJson = False,
    device: Device = "cpu",
    dtype: Annotated[str, typer.Option(help="The dtype of the tensors.")] = "float64",
    only: Annotated[list[str] | None, typer.Option(help="Rows whose name contains this; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option(help="Leave out rows that take many seconds.")] = False,
    part: Part = "",
    steps: Annotated[int, typer.Option(help="Training steps of the rows that test for leaks.")] = 10_000,
    reference: Annotated[
        str, typer.Option(help="The name, in the file, of the function that defines the right results.")
    ] = "reference",
    samples: Annotated[
        str, typer.Option(help="The name, in the file, of the function that makes samples.")
    ] = "samples",
) -> None:
    """Test derivatives, transforms, compilers, modes and processes. Exit code 1 if one raises or is silently wrong.

    TARGET is a file of operators, or FILE:NAME for one operator, torch.autograd.Function, operator of torch.ops or
    plain function. What is not an operator of opwright is compared with the file's `reference`, on its `samples`.
    """
    options = {
        "dtype": dtype_named(dtype),
        "device": device,
        "steps": steps,
        "quick": quick,
        "only": tuple(only or ()),
        "part": checked_part(part),
    }
    subjects = load_subjects(target, reference, samples)
    scorecards = [_scorecard(subject, options).to_json() for subject in subjects]
    write_judged(scorecards, audit_table, as_json=as_json)


def _scorecard(loaded: Loaded, options: Mapping[str, Any]) -> Scorecard:
    with progress_on_stderr(loaded.name) as tell:
        return audit(loaded.subject, loaded.reference, loaded.samples, progress=tell, **options)

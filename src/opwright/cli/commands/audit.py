"""opwright audit: test operators under PyTorch's transforms, modes and tools."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from opwright.auditing import Scorecard, audit
from opwright.auditing.scorecard import together
from opwright.cli.arguments import AsJson, Device, Part, Target, checked_part, dtype_named
from opwright.cli.load import load_subjects
from opwright.cli.side_by_side import by_subject, parts_of, titled, whole, workers
from opwright.cli.terminal import write_judged
from opwright.report.audit_table import audit_table
from opwright.samples import Progress


def audit_command(
    context: typer.Context,
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
    given = checked_part(part)
    options: dict[str, Any] = {
        "dtype": dtype_named(dtype),
        "device": device,
        "steps": steps,
        "quick": quick,
        "only": tuple(only or ()),
    }

    def judged(part: str, tell: Progress) -> list[Any]:
        return [
            audit(
                each.subject,
                each.reference,
                each.samples,
                progress=titled(tell, each.name),
                part=part or given,
                **options,
            ).to_json()
            for each in load_subjects(target, reference, samples)
        ]

    found = by_subject(parts_of(workers(context, device, given), judged))
    write_judged([whole(parts, Scorecard.from_json, together) for parts in found], audit_table, as_json=as_json)

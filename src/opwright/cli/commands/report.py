"""opwright report: all that is known of operators, each as a page to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from opwright.api.operator import Operator
from opwright.auditing import Scorecard, audit
from opwright.auditing.scorecard import together as all_rows
from opwright.benchmark import bench
from opwright.benchmark.ahead import build_ahead
from opwright.checking import Verdict, check
from opwright.checking.verdict import together
from opwright.cli.arguments import AsJson, Target
from opwright.cli.load import load_operators
from opwright.cli.side_by_side import by_subject, parts_of, titled, whole, workers
from opwright.cli.terminal import progress_on_stderr, write_json, write_text
from opwright.page import PageFacts, gather, measure_more, render
from opwright.samples import Progress

DEFAULT_PAGE = Path("report.html")

To = Annotated[
    Path, typer.Option(help="The file to write; with several operators, each has its name before the suffix.")
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a page is to show."""

    check: bool
    audit: bool
    bench: bool
    compile: bool


def report_command(
    context: typer.Context,
    target: Target,
    to: To = DEFAULT_PAGE,
    as_json: AsJson = False,
    with_check: Annotated[bool, typer.Option("--check/--no-check", help="Run the quick check.")] = True,
    with_audit: Annotated[bool, typer.Option("--audit/--no-audit", help="Run the quick audit.")] = True,
    with_bench: Annotated[bool, typer.Option("--bench/--no-bench", help="Measure times and memory.")] = True,
    compile: Annotated[bool, typer.Option(help="Measure torch.compile too.")] = True,
) -> None:
    r"""Write a page with the function, graphs, formulas, kernels, and what tests and measurements found.

    Needs igraph and matplotlib: pip install 'opwright\[report]'. Exit code 1 if something is found wrong.
    """
    wanted = Wanted(with_check, with_audit, with_bench, compile)

    def judged(part: str, tell: Progress) -> list[Any]:
        return [_judged(operator, wanted, part, titled(tell, operator.name)) for operator in load_operators(target)]

    found = by_subject(parts_of(workers(context), judged))
    operators = load_operators(target)
    everything = []
    for operator, parts in zip(operators, found, strict=True):
        facts = _facts(operator, wanted, parts)
        page = to if len(operators) == 1 else to.with_stem(f"{to.stem}-{operator.name.rpartition('::')[2]}")
        page.write_text(render(facts.to_json()), encoding="utf-8")
        everything.append(facts)
        if not as_json:
            write_text(f"{operator.name}: {page}")
    if as_json:
        write_json([facts.to_json() for facts in everything])
    if not all(facts.passed for facts in everything):
        raise typer.Exit(1)


def _judged(operator: Operator, wanted: Wanted, part: str, tell: Progress) -> dict[str, Any]:
    """One part of what tests find; and, if there are several, of what has to be built to measure."""
    if operator.samples is None:
        return {}
    found: dict[str, Any] = {}
    if wanted.check:
        found["verdict"] = check(operator, quick=True, progress=tell, part=part).to_json()
    if wanted.bench and part:
        build_ahead(operator, part, tell, compile=wanted.compile, second_order=True)
    if wanted.audit:
        found["audit"] = audit(operator, quick=True, progress=tell, part=part).to_json()
    return found


def _facts(operator: Operator, wanted: Wanted, parts: Sequence[dict[str, Any]]) -> PageFacts:
    found: dict[str, Any] = {}
    with progress_on_stderr(operator.name) as tell:
        if verdicts := [part["verdict"] for part in parts if "verdict" in part]:
            found["verdict"] = whole(verdicts, Verdict.from_json, together)
        if wanted.bench and operator.samples is not None:
            found["bench"] = bench(operator, compile=wanted.compile, progress=tell).to_json()
            found |= measure_more(operator, compile=wanted.compile, progress=tell)
        if scorecards := [part["audit"] for part in parts if "audit" in part]:
            found["audit"] = whole(scorecards, Scorecard.from_json, all_rows)
        tell("drawing", 0, 1)
        return gather(operator, **found)

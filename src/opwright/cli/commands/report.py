"""opwright report: all that is known of operators, each as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from opwright.api.operator import Operator
from opwright.auditing import audit
from opwright.benchmark import bench
from opwright.checking import check
from opwright.cli.arguments import AsJson, Target
from opwright.cli.load import load_operators
from opwright.cli.terminal import progress_on_stderr, write_json, write_text
from opwright.page import PageFacts, gather, measure_more, render

DEFAULT_PAGE = Path("report.html")

To = Annotated[
    Path, typer.Option(help="The file to write; with several operators, each has its name before the suffix.")
]


def report_command(
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
    operators = load_operators(target)
    everything = []
    for operator in operators:
        facts = _facts(operator, with_check, with_audit, with_bench, compile)
        page = to if len(operators) == 1 else to.with_stem(f"{to.stem}-{operator.name.rpartition('::')[2]}")
        page.write_text(render(facts.to_json()), encoding="utf-8")
        everything.append(facts)
        if not as_json:
            write_text(f"{operator.name}: {page}")
    if as_json:
        write_json([facts.to_json() for facts in everything])
    if not all(facts.passed for facts in everything):
        raise typer.Exit(1)


def _facts(operator: Operator, with_check: bool, with_audit: bool, with_bench: bool, compile: bool) -> PageFacts:
    measured: dict[str, Any] = {}
    with progress_on_stderr(operator.name) as tell:
        if with_check and operator.samples is not None:
            measured["verdict"] = check(operator, quick=True, progress=tell).to_json()
        if with_bench and operator.samples is not None:
            measured["bench"] = bench(operator, compile=compile, progress=tell).to_json()
            measured |= measure_more(operator, compile=compile, progress=tell)
        if with_audit and operator.samples is not None:
            measured["audit"] = audit(operator, quick=True, progress=tell).to_json()
        tell("drawing", 0, 1)
        return gather(operator, **measured)

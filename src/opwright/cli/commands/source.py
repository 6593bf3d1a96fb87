"""opwright source: show the sources of operators."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from opwright.binding.rungs import RungName
from opwright.cli.arguments import AsJson, Target
from opwright.cli.load import load_operators
from opwright.cli.terminal import write_either


def source_command(
    target: Target,
    as_json: AsJson = False,
    rung: Annotated[str, typer.Option(help="function, cpp or cuda.")] = "cpp",
) -> None:
    """Show the source of one rung."""
    sources = [
        {"operator": operator.name, "rung": rung, "source": operator.source(cast(RungName, rung))}
        for operator in load_operators(target)
    ]
    write_either(as_json, sources, "\n\n".join(each["source"] for each in sources))

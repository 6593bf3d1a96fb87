"""opwright explain: show what was derived from operators."""

from __future__ import annotations

from opwright.cli.arguments import AsJson, Target
from opwright.cli.load import load_operators
from opwright.cli.terminal import write_either


def explain_command(target: Target, as_json: AsJson = False) -> None:
    """Show graphs, gradient formulas, saved tensors, and kernels."""
    explained = [{"operator": operator.name, "explanation": operator.explain()} for operator in load_operators(target)]
    write_either(as_json, explained, "\n\n".join(each["explanation"] for each in explained))

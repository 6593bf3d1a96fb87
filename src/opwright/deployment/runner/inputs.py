"""What a program demands of its inputs, as rows of a table in C++."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from torch.export import ExportedProgram

from opwright.deployment.programs.dtypes import ATEN_DTYPES
from opwright.deployment.programs.exported import Exported
from opwright.errors import DeploymentUnsupported

_MOST = 2**62


def input_rows(exported: Exported) -> tuple[list[str], list[str]]:
    """Write the rows of the inputs, and those of the sizes that may change.

    Returns:
        Rows `{dtype, {sizes}, {order}}`, where a size that may change is ~index of its symbol and `order` has the
        dimensions as they lie in memory; and rows `{"name", least, most}` of the symbols.

    Raises:
        DeploymentUnsupported: If a size is computed from others, which the program could not test.
    """
    symbols: dict[str, tuple[int, int]] = {}
    rows = []
    for tensor, shape in zip(exported.inputs, _shapes(exported.program), strict=True):
        if tensor.dtype not in ATEN_DTYPES:
            raise DeploymentUnsupported(
                f"an argument of the model is of {tensor.dtype}", hint="cast it in the model, from a dtype of numbers"
            )
        sizes = [str(size) if isinstance(size, int) else f"~{_index(size, symbols, exported)}" for size in shape]
        order = sorted(range(tensor.dim()), key=[-stride for stride in tensor.stride()].__getitem__)
        listed = "}, {".join([", ".join(sizes), ", ".join(map(str, order))])
        rows.append(f"{{{ATEN_DTYPES[tensor.dtype]}, {{{listed}}}}}")
    ranges = [f'{{"{name}", {least}, {most}}}' for name, (least, most) in symbols.items()]
    return rows, ranges


def _shapes(program: ExportedProgram) -> list[Sequence[Any]]:
    users = {str(name) for name in program.graph_signature.user_inputs}
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in users]
    return [tuple(node.meta["val"].shape) for node in nodes]


def _index(size: Any, symbols: dict[str, tuple[int, int]], exported: Exported) -> int:
    name = str(size)
    if not re.fullmatch(r"\w+", name):
        raise DeploymentUnsupported(
            f"a size of an argument is {name}, computed from another",
            hint="let every size that may change be one of its own: a plain torch.export.Dim",
        )
    found = {str(symbol): span for symbol, span in exported.program.range_constraints.items()}.get(name)
    least = int(found.lower) if found is not None else 0
    most = int(found.upper) if found is not None and str(found.upper).isdigit() else _MOST
    symbols.setdefault(name, (least, min(most, _MOST)))
    return list(symbols).index(name)

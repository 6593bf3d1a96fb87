"""What a trace shows that kernels cannot do for arguments like these."""

from __future__ import annotations

from collections.abc import Sequence

from opwright.errors import NoKernel
from opwright.operators.orders import orders_in
from opwright.tracing.graph import Graph
from opwright.tracing.interface.specs import ArgumentSpec, TensorSpec


def refuse_here(graph: Graph, specs: Sequence[ArgumentSpec]) -> None:
    """Refuse random numbers on a GPU, and arguments in another order where the trace holds for contiguous ones.

    Raises:
        NoKernel: If there is such.
    """
    if graph.is_random and any(isinstance(spec, TensorSpec) and spec.device == "cuda" for spec in specs):
        raise NoKernel(
            "it draws random numbers, which on a GPU only the reference draws as eager does",
            hint="draw them outside of the operator, and pass them as an argument",
        )
    if graph.needs_row_major and orders_in(specs):
        raise NoKernel("what it does depends on how its arguments lie in memory", hint="pass them .contiguous()")

"""Functions that are served as written, because kernels gain nothing over them."""

from __future__ import annotations

from opwright.codegen.header import Origin
from opwright.ir.program import Call, Program, View, programs_of
from opwright.tracing.graph import Graph

# As the only operation of a function, these were measured to be slower in our kernels than in PyTorch's, forward or
# backward (benchmarks/README.md). Inside of a larger function they are fused as ever.
_SLOWER_ALONE = frozenset({
    *("aten::prod", "aten::cumprod", "aten::remainder", "aten::fmod", "aten::floor_divide"),
    *("aten::div.Tensor_mode", "aten::div.Scalar_mode", "aten::diag_embed", "aten::rot90"),
})  # fmt: skip


def gains_nothing(graph: Graph, origin: Origin | None, *programs: Program) -> bool:
    """Whether the user's function is at most one operation of PyTorch, and the Programs have no kernel that gains.

    Then they are at best the calls that PyTorch makes itself. The references of this package, such as gradients, are
    slower to run than their Programs.
    """
    if origin is None or graph.is_random or len(graph.operations) > 1:
        return False
    if _SLOWER_ALONE.intersection((*graph.operations, *(name.split(".")[0] for name in graph.operations))):
        return True
    steps = [step for program in programs for part in programs_of(program) for step in part.steps]
    return all(isinstance(step, Call | View) for step in steps)

"""What a trace shows that kernels cannot do for arguments like these."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch._ops import OpOverload

from opwright.errors import NoKernel
from opwright.operators.orders import orders_in
from opwright.tracing.graph import Graph
from opwright.tracing.hints import RETURN_CLONE
from opwright.tracing.interface.maybe_views import may_be_views
from opwright.tracing.interface.specs import ArgumentSpec, TensorSpec

_is_built_for_cuda = torch.cuda._is_compiled
_is_registered = torch._C._dispatch_has_kernel
_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
_ON_GPUS = (
    *("CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd"),
    "CompositeExplicitAutogradNonFunctional",
)


def refuse_here(graph: Graph, specs: Sequence[ArgumentSpec]) -> None:
    """Refuse what kernels cannot do for such arguments.

    On a GPU these are random numbers, and operations that PyTorch has for the processor only; and arguments in another
    order where the trace holds for contiguous ones.

    Raises:
        NoKernel: If there is such.
    """
    on_gpu = any(isinstance(spec, TensorSpec) and spec.device == "cuda" for spec in specs)
    if graph.is_random and on_gpu:
        raise NoKernel(
            "it draws random numbers, which on a GPU only the reference draws as eager does",
            hint="draw them outside of the operator, and pass them as an argument",
        )
    if on_gpu and _is_built_for_cuda() and (missing := missing_on_gpus(graph)):
        raise NoKernel(
            f"PyTorch has no {missing} for GPUs; on the processor, where functions are traced, it is what eager runs",
            hint="keep it outside of the operator; the parts of a module are served by themselves",
        )
    if graph.needs_row_major and orders_in(specs):
        hint = RETURN_CLONE if may_be_views(graph.outputs) else "pass them .contiguous()"
        raise NoKernel("what it does depends on how its arguments lie in memory", hint=hint)


def missing_on_gpus(graph: Graph) -> str:
    """The first operation of a trace that PyTorch, built for CUDA, has no kernel of on GPUs; empty if it has all.

    Such is attention: eager has a kernel for the processor, and several others for GPUs.
    """
    for node in graph.fx.nodes:
        if isinstance(node.target, OpOverload) and not _is_on_gpus(node.target.name()):
            return str(node.target).removesuffix(".default")
    return ""


def _is_on_gpus(operation: str) -> bool:
    """Whether there is a kernel, or the operation is made of others; what asks for sizes has neither."""
    return not _is_registered(operation) or any(_has_kernel(operation, key) for key in _ON_GPUS)

"""The orders in which Programs read their inputs and write their outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch.fx import Node

from opwright.derivation.backward import imitates_eager
from opwright.derivation.joint import Joint
from opwright.errors import NoKernel
from opwright.tracing.graph import Graph, value_of
from opwright.tracing.interface.orders import Order, Orders
from opwright.tracing.interface.specs import ArgumentSpec, TensorSpec
from opwright.tracing.recording.draws import in_another_order
from opwright.tracing.result_orders import ResultOrders, result_orders

NodeOrders = Mapping[Node, Order]


def orders_of_results(
    reference: Callable[..., Any], specs: Sequence[ArgumentSpec], graph: Graph, gradients: Sequence[Node | None] = ()
) -> ResultOrders:
    """Those of eager's results.

    Raises:
        NoKernel: If code around it relies on eager's strides, and they are not known or leave gaps.
    """
    found = result_orders(reference, specs, graph, gradients)
    if imitates_eager(reference) and not found.are_known:
        raise NoKernel(
            "its result lies in memory otherwise than kernels would lay it out", hint="return its .contiguous()"
        )
    return found


def drawn_as_in_eager(graph: Graph, results: ResultOrders) -> Graph:
    """The graph, with random numbers drawn into memory that lies as eager's.

    Raises:
        NoKernel: If it is not known how that lies.
    """
    if results.draws is None and (results.are_known or not any(graph.draws.values())):
        return graph
    found = results.draws if results.draws and len(results.draws) == len(graph.draws) else (None,) * len(graph.draws)
    draws: dict[Node, Order] = {}
    for node, order in zip(graph.draws, found, strict=True):
        if order is None:
            raise in_another_order(str(node.target))
        draws[node] = order
    return replace(graph, draws=draws)


def argument_orders(graph: Graph, specs: Sequence[ArgumentSpec]) -> NodeOrders:
    """Those of the arguments."""
    lies = {spec.name: spec.order for spec in specs if isinstance(spec, TensorSpec)}
    return {given.node: lies.get(given.name, ()) for given in graph.inputs}


def forward_orders(graph: Graph, arguments: NodeOrders, results: ResultOrders, saved: Iterable[Node]) -> NodeOrders:
    """Those of the outputs and of what is saved, which lies as an argument or output of its shape, or of its rank."""
    outputs = dict(zip(graph.outputs, results.outputs, strict=True))
    known = {**arguments, **outputs}
    return {node: _like(graph, node, known) for node in saved} | outputs


def backward_orders(joint: Joint, results: ResultOrders) -> tuple[NodeOrders, NodeOrders]:
    """Those of the cotangents, which are taken to lie as the outputs, and of the gradients."""
    cotangents = zip(joint.tangents, results.outputs, strict=True)
    gradients = zip(joint.gradients, results.gradients or ((),) * len(joint.gradients), strict=True)
    return {n: order for n, order in cotangents if n is not None}, {n: order for n, order in gradients if n is not None}


def _like(graph: Graph, node: Node, known: NodeOrders) -> Order:
    if not any(known.values()):
        return ()
    shape = graph.sizes.shape(value_of(node))
    shapes = {other: graph.sizes.shape(value_of(other)) for other in known}
    same = [order for other, order in known.items() if shapes[other] == shape]
    return next(iter([*same, *(order for other, order in known.items() if len(shapes[other]) == len(shape))]), ())


def orders_in(specs: Sequence[ArgumentSpec]) -> Orders:
    """Those of arguments that are described so."""
    described = [(position, spec) for position, spec in enumerate(specs) if isinstance(spec, TensorSpec)]
    tensors = [(p, spec.order, spec.expanded) for p, spec in described if len(spec.sizes) > 1]
    return tuple(tensors) if any(order for _, order, _ in tensors) else ()

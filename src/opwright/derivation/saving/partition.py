"""What to save for the backward pass, and the two graphs that follow from it.

Recomputing an element-wise value inside a fused kernel costs a few instructions; saving it costs memory traffic. So
inputs are saved (they are alive anyway), and element-wise values and views are recomputed; only if a reduction, a
library operation (a matrix product) or a copy (`cat`) would run twice, a minimum cut chooses what to save. Copies run
twice where PyTorch could not pass all that is saved. If the backward pass needs only outputs, as for softmax, these are
saved instead. A budget saves some of this (`budget.py`).

The backward pass computes in float32 what the forward pass did, without rounding. In a half type, an output that is
rounded does not fit that: `exp(x - y)` with y = logsumexp(x) was three times as wrong as eager's, which rounds both on
one grid. So an output that is small is saved once more, in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

import torch
from torch.fx import Node

from opwright.codegen.cpp.program import MOST_ARGUMENTS
from opwright.derivation.joint import Joint
from opwright.derivation.saving.budget import Budget, spend
from opwright.derivation.saving.costs import count, is_cheap, is_copy, is_rounded_at_the_end, is_view, values_of_rows
from opwright.derivation.saving.minimum_cut import minimum_cut
from opwright.derivation.saving.save_policy import SavePolicy
from opwright.tracing.graph import ancestors, value_of
from opwright.tracing.raising import refusing_zeros
from opwright.tracing.recording.values import STANDS_FOR

_LITTLE = 8  # times smaller than an argument


@dataclass(frozen=True, slots=True)
class Partition:
    """What crosses from the forward to the backward pass.

    Attributes:
        inputs: Arguments that the backward pass reads.
        outputs: Outputs that it reads.
        intermediates: Values that the forward pass returns besides its outputs; small outputs of half types, too,
            which are returned rounded and saved as they were computed.
        little: Those of them that are small beside the arguments, or beside the rows that they were made of.
        rounded: What is saved as it is in memory, and read by more of the forward pass.
        budget: What came of a budget; None if there was none.
    """

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    intermediates: tuple[Node, ...]
    little: frozenset[Node]
    rounded: tuple[Node, ...] = ()
    budget: Budget | None = None


def partition(joint: Joint, policy: SavePolicy = "auto", unchanged: Set[str] | None = None) -> Partition:
    """Choose what to save.

    Args:
        joint: The reference and its derivative in one graph.
        policy: "auto" as described above; "inputs" recomputes everything; "all" recomputes nothing; a budget saves
            what it allows of what "auto" does.
        unchanged: Names of arguments that nobody changes in place before the backward pass, such as parameters. "auto"
            then saves others, and results, only if eager's backward pass reads them; None for all.
    """
    tangents = {tangent for tangent in joint.tangents if tangent is not None}
    arguments = [given.node for given in joint.graph.inputs if given.node not in tangents]
    outputs = {output for output in joint.graph.outputs if output not in arguments}
    wanted = [gradient for gradient in joint.gradients if gradient is not None]
    backward = _reached_from(joint, tangents)
    largest = max((count(joint, node) for node in arguments), default=0)
    of_rows = values_of_rows(joint)

    def is_little(node: Node) -> bool:
        return _LITTLE * count(joint, node) <= largest or node in of_rows

    outputs -= {output for output in outputs if is_rounded_at_the_end(output) and is_little(output)}
    border = _border(wanted, backward, tangents)
    if policy == "inputs":
        saved = [node for node in border if node in arguments]
        saved += [node for node in ancestors(border) if node in arguments and node not in saved]
    elif policy == "all":
        saved = border
    else:
        saved = _cut(joint, border, arguments, outputs)
        if unchanged is not None and not _may_save(joint, saved, wanted, outputs, unchanged):
            saved = border
    little = {node for node in saved if is_little(node)}
    budget = None
    if not isinstance(policy, str):
        own = [node for node in saved if node not in arguments]
        saved, budget = spend(joint, border, own, policy, lambda node: _stored_bytes(joint, node, node in little))
        saved += [node for node in ancestors(border, stop=set(saved)) if node in arguments]
    intermediates = tuple(node for node in saved if node not in arguments and node not in outputs)
    return Partition(
        inputs=tuple(node for node in arguments if node in saved),
        outputs=tuple(node for node in saved if node in outputs),
        intermediates=intermediates,
        little=frozenset(little.intersection(intermediates)),
        rounded=tuple(node for node in saved if node not in little and not backward.issuperset(node.users)),
        budget=budget,
    )


def inputs_behind(joint: Joint) -> set[Node]:
    """The arguments whose values the gradients depend on, directly, or through recomputed or given values."""
    pending = [gradient for gradient in joint.gradients if gradient is not None]
    behind: set[Node] = set()
    while pending:  # a given value may be computed from another one
        found = set(ancestors(pending, stop=behind)) - behind
        behind |= found
        pending = [node.meta[STANDS_FOR] for node in found if STANDS_FOR in node.meta]
    return _arguments(joint) & behind


def inputs_checked(joint: Joint) -> set[Node]:
    """The arguments that the function refuses if they are zeros."""
    return _arguments(joint).intersection(ancestors(refusing_zeros(joint.graph.fx.nodes)))


def _arguments(joint: Joint) -> set[Node]:
    """The arguments of the function, without the cotangents."""
    return {given.node for given in joint.graph.inputs}.difference(filter(None, joint.tangents))


def _reached_from(joint: Joint, tangents: set[Node]) -> set[Node]:
    """Everything computed from a cotangent: it can only run in the backward pass."""
    reached = set(tangents)
    for node in joint.graph.fx.nodes:
        if any(source in reached for source in node.all_input_nodes):
            reached.add(node)
    return reached


def _border(wanted: Sequence[Node], backward: set[Node], tangents: set[Node]) -> list[Node]:
    """Forward values that the backward pass reads directly."""
    border: dict[Node, None] = {}
    for node in ancestors(wanted):
        if node not in backward and node in wanted:
            border[node] = None
        if node in backward:
            border.update((source, None) for source in node.all_input_nodes if source not in backward)
    return list(border)


def _cut(joint: Joint, border: Sequence[Node], arguments: Sequence[Node], outputs: Set[Node]) -> list[Node]:
    behind = ancestors(border, stop=outputs)
    if behind and all(node in outputs or (is_cheap(node) and node not in arguments) for node in behind):
        return [node for node in behind if node in outputs]
    involved = ancestors(border)
    if all(is_cheap(node) for node in involved):
        return [node for node in arguments if node in involved]
    saved = _minimum_cut(joint, border, involved, outputs, is_cheap)
    if len(saved) + sum(tangent is not None for tangent in joint.tangents) > MOST_ARGUMENTS:
        return _minimum_cut(joint, border, involved, outputs, lambda node: is_cheap(node) or is_copy(node))
    return saved


def _may_save(
    joint: Joint, saved: Sequence[Node], wanted: Sequence[Node], outputs: Set[Node], unchanged: Set[str]
) -> bool:
    """Whether eager saves all of these that others could change, too: what its backward pass reads, or views of it.

    The trace of the backward pass begins after the last result.
    """
    nodes = list(joint.graph.fx.nodes)
    forward = set(nodes[: 1 + max(map(nodes.index, joint.graph.outputs), default=0)])
    read = {source for node in ancestors(wanted) if node not in forward for source in node.all_input_nodes}
    for node in reversed(nodes):
        if node in read and is_view(node):
            read.update(node.all_input_nodes)
    changeable = {given.node for given in joint.graph.inputs if given.name not in unchanged} | outputs
    return all(node in read for node in saved if node in changeable)


def _minimum_cut(
    joint: Joint,
    border: Sequence[Node],
    involved: Sequence[Node],
    outputs: Set[Node],
    is_recomputed: Callable[[Node], bool],
) -> list[Node]:
    """Cut every path from values that are not recomputed to the backward pass, saving the fewest bytes.

    Arguments and outputs, which are in memory anyway, cost almost nothing. Views are never cut: saving one saves its
    base.
    """
    costs = {node: _cost(joint, node, outputs) for node in involved}
    edges = [(source, node) for node in involved for source in node.all_input_nodes]
    return minimum_cut(costs, edges, [n for n in involved if n.op == "placeholder" or not is_recomputed(n)], border)


def _cost(joint: Joint, node: Node, outputs: Set[Node]) -> int | None:
    """The cost of saving a value, in units of which a byte has 100,000; None if it must not be cut here."""
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor) or is_view(node):
        return None
    if node.op == "placeholder":
        return 100  # saved anyway
    if node in outputs:
        return 90  # computed for others, so recomputing it costs nothing more
    a_byte = 101_000 if is_cheap(node) else 100_000  # the result of a library operation is in memory already
    return a_byte * (1 + count(joint, node) * value.element_size())


def _stored_bytes(joint: Joint, node: Node, is_little: bool) -> int:
    """The bytes of a saved value; what is little is saved in float32 rather than in a half type."""
    dtype = value_of(node).dtype
    wider = torch.float32.itemsize if is_little and dtype.is_floating_point else 0
    return count(joint, node) * max(dtype.itemsize, wider)

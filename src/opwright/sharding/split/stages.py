"""The stages of an operator that is cut at reductions: each computes some values of its graph from values before.

    rms norm    stage 0: x → the sum of x² over a part of each row     all-reduce     rest: x, weight, sum → result

Nothing large goes from stage to stage: what a stage needs besides reductions it computes again from the arguments.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch.fx import Node

from opwright.ir.expressions.integer import Integer, evaluate
from opwright.operators.structure import Structure
from opwright.sharding.rules.cuts import Cuts
from opwright.sharding.rules.lies import Kind
from opwright.tracing.graph import ancestors, value_of
from opwright.tracing.scalars.reals import Real

REDUCTIONS: Mapping[Kind, str] = {"sum": "sum", "maximum": "max", "minimum": "min"}
_NARROW = (torch.float16, torch.bfloat16)


class Stage:
    """A part of a traced function: tensors, reductions of stages before and the share of the axis → values.

    Args:
        structure: The traced operator.
        given: The nodes of the reductions that it is given after the tensors.
        wanted: The nodes that it computes.
        scaled: The power of the share by which the value of a node is multiplied.
        name: What it is called.

    Attributes:
        name: The same.
        parameters: The names of its arguments.
        key: Tells it from other stages, in any process.
        operator: The operator of it, once one is made.
    """

    def __init__(
        self,
        structure: Structure,
        given: Sequence[Node],
        wanted: Sequence[Node],
        scaled: Mapping[Node, int],
        name: str,
    ) -> None:
        graph = structure.graph
        inputs = [one.node for one in graph.inputs]
        self.name = name
        self.operator: Any = None
        self._names = [one.name for one in graph.inputs]
        self._given = (*inputs, *given)
        self._wanted = tuple(wanted)
        self._scaled = scaled
        needed = set(ancestors(wanted, stop=set(self._given)))
        self._nodes = [node for node in graph.fx.nodes if node in needed and node not in self._given]
        self.parameters = (*self._names, *[f"reduced_{p}" for p in range(len(given))], "share")
        said = [str(graph.fx), *map(str, (given, wanted, sorted(map(str, scaled.items()))))]
        self.key = hashlib.sha256("\n".join(said).encode()).hexdigest()

    def __call__(self, *tensors: torch.Tensor, exactly: bool = False) -> tuple[torch.Tensor, ...]:
        """Compute the wanted values; `exactly` in double precision, whatever the function converts to."""
        *given, share = tensors
        values: dict[Node, Any] = dict(zip(self._given, given, strict=True))
        sizes = {
            f"{name}_size_{dimension}": size
            for name, tensor in zip(self._names, given, strict=False)
            for dimension, size in enumerate(tensor.shape)
        }
        told = partial(_told, values, sizes, tensors[0].device, exactly)
        for node in self._nodes:
            function: Any = node.target
            made = function(*told(node.args), **told(node.kwargs))
            if node in self._scaled:
                made = made * share.to(made.dtype) ** self._scaled[node]
            values[node] = made
        return tuple(values[node] for node in self._wanted)


def _told(values: Mapping[Node, Any], sizes: Mapping[str, Any], device: torch.device, exactly: bool, given: Any) -> Any:
    """An argument of an operation: nodes and sizes are what they are now."""
    told = partial(_told, values, sizes, device, exactly)
    match given:
        case Node():
            return values[given]
        case Integer():
            return evaluate(given, sizes)
        case list() | tuple():
            return type(given)(map(told, given))
        case dict():
            return {key: told(value) for key, value in given.items()}
        case torch.device():
            return device
        case torch.dtype() if exactly and given.is_floating_point:
            return torch.float64
        case _:
            return given


@dataclass(frozen=True, slots=True)
class Reduced:
    """A stage, and how each of its values is reduced over the processes: "sum", "max" or "min"."""

    stage: Stage
    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """An operator cut at reductions.

    Attributes:
        before: The stages whose values are reduced, in order.
        last: What computes the results from the arguments and all reductions.
        places: For each result, its position among the values of the last stage.
        sizes: For each reduction, its shape and the bytes of an element.
    """

    before: tuple[Reduced, ...]
    last: Stage
    places: tuple[int, ...]
    sizes: tuple[tuple[tuple[Integer, ...], int], ...] = field(repr=False)

    @property
    def collectives(self) -> int:
        """How many all-reduces it takes: one for each stage and kind of reduction."""
        return sum(len(set(one.functions)) for one in self.before)

    def bytes(self, sizes: Mapping[str, int]) -> int:
        """The bytes of all reductions, for sizes of the arguments by their symbols."""
        total = 0
        for shape, width in self.sizes:
            for size in shape:
                width *= evaluate(size, sizes)
            total += width
        return total


def split_of(structure: Structure, cuts: Cuts, members: Sequence[int], spelled: Callable[..., Any]) -> Split | None:
    """The stages of an operator; None if its graph cannot be taken apart there.

    Args:
        structure: The traced operator.
        cuts: Where it is cut.
        members: For each result, its position among the outputs.
        spelled: Spells a shape by the sizes of arguments.
    """
    nodes = structure.nodes
    if any(name not in nodes for name in (*cuts.reduced, *cuts.scaled)):
        return None
    reduced = {nodes[name]: REDUCTIONS[kind] for name, kind in cuts.reduced.items()}
    scaled = {nodes[name]: power for name, power in cuts.scaled.items()}
    if any(value_of(node).dtype in _NARROW for node in (*reduced, *scaled)) or _has_numbers(structure):
        return None  # sums of parts would be rounded
    depths: dict[Node, int] = {}
    for node in structure.graph.fx.nodes:
        if node in reduced:
            above = [depths[one] + 1 for one in ancestors([node]) if one is not node and one in depths]
            depths[node] = max(above, default=0)
    levels = [[node for node in depths if depths[node] == level] for level in range(max(depths.values()) + 1)]
    before, known = [], list[Node]()
    for number, level in enumerate(levels):
        stage = Stage(structure, known, level, scaled, f"part_{number}")
        before.append(Reduced(stage, tuple(reduced[node] for node in level)))
        known += level
    outputs = [structure.graph.outputs[member] for member in members]
    wanted = list(dict.fromkeys(outputs))
    last = Stage(structure, known, wanted, scaled, "rest")
    buffers = {node: buffer for buffer, node in nodes.items()}
    shapes = {target.name: target.shape for target in structure.targets}
    sizes = tuple((spelled(shapes[buffers[node]]), value_of(node).element_size()) for node in known)
    return Split(tuple(before), last, tuple(wanted.index(node) for node in outputs), sizes)


def _has_numbers(structure: Structure) -> bool:
    """Whether an operation takes a number that varies, or is no plain operation."""
    for node in structure.graph.fx.nodes:
        if node.op == "call_function" and not (
            isinstance(node.target, torch._ops.OpOverload) or node.target is operator.getitem
        ):
            return True
        if any(isinstance(one, Real) for one in torch.utils._pytree.tree_leaves((node.args, node.kwargs))):
            return True
    return False

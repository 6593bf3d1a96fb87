"""The stages of an operator that is cut at reductions: each computes some values of its graph from values before.

    rms norm    stage 0: x → the sum of x² over a part of each row     all-reduce     rest: x, weight, sum → result

Nothing large goes from stage to stage: what a stage needs besides reductions it computes again from the arguments.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import torch
from torch.fx import Node

from opwright.ir.expressions.integer import Integer, evaluate
from opwright.operators.structure import Structure
from opwright.sharding.rules.cuts import Cuts
from opwright.sharding.rules.lies import Kind
from opwright.tracing.graph import ancestors, value_of
from opwright.tracing.recording.values import Digests
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
        given: The digests of reductions that are known before, in the order in which stages take them.
        before: The stages whose values are reduced, in order.
        last: What computes the results from the arguments and all reductions.
        places: For each result, its position among the values of the last stage.
        digests: Of all reductions: first those that are given, then those of the stages.
        sizes: For each reduction of the stages, its shape and the bytes of an element.
    """

    given: tuple[str, ...]
    before: tuple[Reduced, ...]
    last: Stage
    places: tuple[int, ...]
    digests: tuple[str, ...] = field(repr=False)
    sizes: tuple[tuple[tuple[Integer, ...], int], ...] = field(repr=False)
    _cutting: _Cutting = field(repr=False)

    @property
    def collectives(self) -> int:
        """How many all-reduces it takes: one for each stage and kind of reduction."""
        return sum(len(set(one.functions)) for one in self.before)

    def bytes(self, sizes: Mapping[str, int]) -> int:
        """The bytes that are reduced, for sizes of the arguments by their symbols."""
        total = 0
        for shape, width in self.sizes:
            for size in shape:
                width *= evaluate(size, sizes)
            total += width
        return total

    def knowing(self, digests: Collection[str]) -> Split:
        """The same where reductions are known: those of a forward pass, in the backward pass."""
        return self._cutting.split(tuple(digest for digest in self._cutting.digests.values() if digest in digests))


@dataclass(frozen=True, slots=True)
class _Cutting:
    """Where the graph of an operator is cut.

    Attributes:
        structure: The traced operator.
        reduced: The nodes that are reduced, and how.
        scaled: As of `Stage`.
        outputs: The nodes of its results.
        shapes: The shapes of the reduced nodes.
        digests: Their digests.
        made: The splits by the digests that are given.
    """

    structure: Structure
    reduced: Mapping[Node, str]
    scaled: Mapping[Node, int]
    outputs: Sequence[Node]
    shapes: Mapping[Node, tuple[Integer, ...]]
    digests: Mapping[Node, str]
    made: dict[tuple[str, ...], Split]

    def split(self, given: tuple[str, ...]) -> Split:
        if given not in self.made:
            self.made[given] = self._new(given)
        return self.made[given]

    def _new(self, given: tuple[str, ...]) -> Split:
        known = [node for node, digest in self.digests.items() if digest in given]
        depths: dict[Node, int] = {}
        for node in self.reduced:
            if node not in known:
                above = [depths[one] + 1 for one in ancestors([node], stop=set(known)) if one in depths]
                depths[node] = max(above, default=0)
        before = []
        for number in range(max(depths.values(), default=-1) + 1):
            level = [node for node in depths if depths[node] == number]
            stage = Stage(self.structure, known, level, self.scaled, f"part_{number}")
            before.append(Reduced(stage, tuple(self.reduced[node] for node in level)))
            known = [*known, *level]
        wanted = list(dict.fromkeys(self.outputs))
        last = Stage(self.structure, known, wanted, self.scaled, "rest")
        sizes = tuple((self.shapes[node], value_of(node).element_size()) for node in known[len(given) :])
        digests = tuple(self.digests[node] for node in known)
        places = tuple(wanted.index(node) for node in self.outputs)
        return Split(given, tuple(before), last, places, digests, sizes, self)


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
    ordered = {node: reduced[node] for node in structure.graph.fx.nodes if node in reduced}
    buffers = {node: buffer for buffer, node in nodes.items()}
    shapes = {target.name: target.shape for target in structure.targets}
    found, digests = Digests(), {}
    for node in ordered:
        digests[node] = found.of(node) or uuid4().hex  # what cannot be repeated is like nothing else
    if len(set(digests.values())) < len(digests):
        return None  # one value is computed twice, which passes have not seen yet
    outputs = [structure.graph.outputs[member] for member in members]
    of_nodes = {node: spelled(shapes[buffers[node]]) for node in ordered}
    return _Cutting(structure, ordered, scaled, outputs, of_nodes, digests, {}).split(())


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

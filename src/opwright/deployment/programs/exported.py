"""What every format starts from: a model exported by `torch.export`, each of its operators one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from opwright.operators.base import BaseOperator
from opwright.tracing.interface.signature import Signature


@dataclass(frozen=True, slots=True, eq=False)
class OperatorCall:
    """One call of an operator in the program.

    Attributes:
        node: It in the graph of the program: `node.target` is the operator's overload.
        operator: What is called.
        signature: Its parameters.
        arguments: What it is called with by the examples, by position: tensors with values, and numbers.
        others: The same for other sizes that the program takes, such as a batch of one.
        outputs: How many tensors it returns.
    """

    node: Node
    operator: BaseOperator
    signature: Signature
    arguments: tuple[Any, ...]
    others: tuple[tuple[Any, ...], ...]
    outputs: int

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The arguments that are no tensors, by the name of their parameter."""
        named = zip(self.signature.parameters, self.arguments, strict=True)
        return {parameter.name: value for parameter, value in named if not isinstance(value, torch.Tensor)}


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """A model that leaves Python.

    Attributes:
        name: What files and libraries are called after: an identifier.
        program: It as `torch.export` has it: core and composite ATen operations, weights lifted to inputs; each
            operator of opwright is a node whose target is its overload.
        calls: These nodes, in the order of the graph.
        inputs: The examples, flat, in the order of the program's user inputs; dense in memory.
        expected: What eager returns for them, flat, with each operator's reference in its place.
        allowed: For each of these, how much a result may differ: twice eager's own error against float64, and what
            rounding causes; 0 for integers and bools.
        script: A copy of the model, if it is TorchScript and leaves as that. `program` then has the sizes of the inputs
            alone.
    """

    name: str
    program: ExportedProgram
    calls: tuple[OperatorCall, ...]
    inputs: tuple[torch.Tensor, ...]
    expected: tuple[torch.Tensor, ...]
    allowed: tuple[float, ...]
    script: Any = None

    @property
    def operators(self) -> tuple[BaseOperator, ...]:
        """The operators that it calls, each once."""
        return tuple({call.operator.name: call.operator for call in self.calls}.values())

    @property
    def is_dynamic(self) -> bool:
        """Whether one of its inputs has a size that may change."""
        return bool(self.program.range_constraints)

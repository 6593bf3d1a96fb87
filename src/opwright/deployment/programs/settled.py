"""Calls whose arguments no program in C++ can pass → calls of operators without these.

A program says in its text which optional arguments a call leaves out, and what strings and lists of numbers it passes.
So each such call can be that of an operator for which they are settled:

    scaled(x, w, None, "relu")    with parameters Tensor x, Tensor? w, Tensor? b, str mode
    scaled_without_b_…(x, w)      with parameters Tensor x, Tensor w
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch.fx import Node
from torch.utils._pytree import tree_leaves

from opwright.deployment.programs.exported import Exported, OperatorCall
from opwright.operators.base import BaseOperator
from opwright.operators.registry import AtDispatcher, at_dispatcher
from opwright.tracing.interface.signature import Parameter

READ_IN_CPP = frozenset({"Tensor", "float", "int", "bool"})


def with_settled_arguments(exported: Exported) -> Exported:
    """The same with such calls in place of those that have other parameters than tensors and numbers.

    The program is changed; calls of a scripted model are settled already. Arguments that are computed stay: who plans
    the library refuses what is left.
    """
    if exported.script is not None:
        return exported
    calls = tuple(map(_settled, exported.calls))
    exported.program.graph_module.recompile()
    return replace(exported, calls=calls)


def _settled(call: OperatorCall) -> OperatorCall:
    parameters = call.signature.parameters
    if READ_IN_CPP.issuperset(str(parameter.type) for parameter in parameters):
        return call
    written = call.signature.bind(tuple(call.node.args), dict(call.node.kwargs))
    values = dict(_values(parameters, written))
    found = settled_operator(call.operator, values, call.outputs)
    if found is None:
        return call

    def left(arguments: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(argument for position, argument in enumerate(arguments) if position not in values)

    call.node.target, call.node.args, call.node.kwargs = found.operator.overload, left(written), {}
    others = tuple(map(left, call.others))
    return replace(
        call, operator=found.operator, signature=found.signature, arguments=left(call.arguments), others=others
    )


def settled_operator(operator: BaseOperator, values: Mapping[int, Any], outputs: int) -> AtDispatcher | None:
    """The operator of the other arguments, all of them given; None if its name is taken.

    Args:
        operator: The operator as written.
        values: What is settled, by position.
        outputs: How many tensors it returns.
    """
    return at_dispatcher(operator.bound_to(values, outputs).overload)


def _values(parameters: Sequence[Parameter], written: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """What stands in the program itself for a parameter that C++ does not read, by position."""
    for position, (parameter, value) in enumerate(zip(parameters, written, strict=True)):
        if is_settled(parameter, value, is_computed=any(isinstance(leaf, Node) for leaf in tree_leaves(value))):
            yield position, value


def is_settled(parameter: Parameter, value: Any, *, is_computed: bool) -> bool:
    """Whether an argument is None, or in the text of the program and of a type that C++ does not read."""
    return value is None or (str(parameter.type).removesuffix("?") not in READ_IN_CPP and not is_computed)

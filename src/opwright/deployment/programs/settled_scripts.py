"""The same as `settled` for models that are TorchScript, whose graphs are changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from opwright.deployment.programs.settled import READ_IN_CPP, is_settled, settled_operator
from opwright.operators.registry import AtDispatcher, at_dispatcher

_CONSTANT = "prim::Constant"
_LIST = "prim::ListConstruct"
_COMPUTED = object()


def settle_arguments_of_script(script: Any) -> None:
    """Put calls of operators that do not take them in place of calls that pass None, strings or lists of numbers.

    The functions that such a method calls become part of it. Arguments that the script computes stay.

    Args:
        script: A `torch.jit.ScriptModule`; its methods are changed.
    """
    for module in script.modules():
        for name in module._c._method_names():
            method = module._c._get_method(name)
            graph = method.graph
            if any(map(_called, every_node(method.inlined_graph))):
                torch._C._jit_pass_inline(graph)
                for node in list(every_node(graph)):
                    _settle(graph, node)


def every_node(block: Any) -> Iterator[Any]:
    """The nodes of a graph of TorchScript, those in its blocks too."""
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from every_node(inner)


def called_overload(kind: str) -> Any:
    """The overload that nodes of a kind call, such as "mine::gate"; None if there is none."""
    namespace, _, name = kind.partition("::")
    return getattr(getattr(getattr(torch.ops, namespace), name, None), "default", None)


def _called(node: Any) -> AtDispatcher | None:
    """The operator of a node, if it is one of ours with other parameters than C++ reads."""
    found = at_dispatcher(called_overload(node.kind()))
    if found is None or READ_IN_CPP.issuperset(str(parameter.type) for parameter in found.signature.parameters):
        return None
    return found


def _settle(graph: Any, node: Any) -> None:
    found = _called(node)
    if found is None:
        return
    values, left = {}, []
    for position, (parameter, argument) in enumerate(zip(found.signature.parameters, node.inputs(), strict=True)):
        constant = _constant(argument)
        if is_settled(parameter, constant, is_computed=constant is _COMPUTED):
            values[position] = constant
        elif isinstance(argument.type(), torch.OptionalType):
            return
        else:
            left.append(argument)
    settled = settled_operator(found.operator, values, node.outputsSize())
    if settled is None:
        return
    instead = graph.create(settled.operator.name, left, node.outputsSize())
    instead.copyMetadata(node)
    instead.insertBefore(node)
    for before, after in zip(node.outputs(), instead.outputs(), strict=True):
        after.setType(before.type())
    node.replaceAllUsesWith(instead)
    node.destroy()


def _constant(value: Any) -> Any:
    """What stands in the script for an argument, or `_COMPUTED`."""
    node = value.node()
    if node.kind() == _CONSTANT:
        return value.toIValue()
    if node.kind() == _LIST:
        parts = [_constant(each) for each in node.inputs()]
        return parts if all(part is not _COMPUTED for part in parts) else _COMPUTED
    return _COMPUTED

"""How the calls of operators become nodes while a program is converted to ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
from onnx.defs import OpSchema
from onnxscript import values

from opwright.deployment.programs.exported import OperatorCall
from opwright.errors import InternalError
from opwright.operators.base import DEFAULT_NAMESPACE

_NUMBER = "call"  # the attribute of a node that says which call it is, until the model is complete
_VERSION = 1
_KINDS = ("float16", "bfloat16", "float", "double", "bool", "uint8", "int8", "int16", "int32", "int64")
_EVERY_TYPE = [f"tensor({kind})" for kind in _KINDS]


def domain_of(call: OperatorCall) -> str:
    """The ONNX domain of an operator: "opwright", and its own namespace behind that if it has one."""
    namespace = call.operator.name.split("::")[0]
    return "opwright" if namespace == DEFAULT_NAMESPACE else f"opwright.{namespace}"


def name_of(call: OperatorCall) -> str:
    """Its name in ONNX."""
    return call.operator.name.split("::")[1]


def translations(calls: Sequence[OperatorCall]) -> Mapping[Any, Callable[..., Any]]:
    """What makes a node of each call, by overload; the exporter meets the calls in their order."""
    left = list(enumerate(calls))

    def translate(overload: Any, *args: Any, **kwargs: Any) -> Any:
        while left:
            place, call = left.pop(0)
            if call.node.target is overload and _is_call(call, call.signature.bind(args, kwargs)):
                tensors = [value for value in call.signature.bind(args, kwargs) if isinstance(value, ir.Value)]
                return _operation(call, len(tensors))(*tensors, **{_NUMBER: place})
        raise InternalError(f"the exporter met a call of {overload} that is not in the program")

    def translating(overload: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: translate(overload, *args, **kwargs)

    return {call.node.target: translating(call.node.target) for call in calls}


def _is_call(call: OperatorCall, given: Sequence[Any]) -> bool:
    """Whether these may be the arguments of a call: dead calls are gone when the exporter comes."""
    pairs = list(zip(call.arguments, given, strict=True))
    numbers = [(mine, theirs) for mine, theirs in pairs if not isinstance(theirs, ir.Value)]
    ranks = [(mine.dim(), len(theirs.shape)) for mine, theirs in pairs if isinstance(theirs, ir.Value) and theirs.shape]
    same = all(type(mine) is type(theirs) and repr(mine) == repr(theirs) for mine, theirs in numbers)
    return same and all(mine == theirs for mine, theirs in ranks)


def _operation(call: OperatorCall, inputs: int) -> Any:
    kinds = [(f"T{place}", _EVERY_TYPE, "") for place in range(inputs + call.outputs)]
    parameters = [OpSchema.FormalParameter(f"value_{place}", f"T{place}") for place in range(inputs + call.outputs)]
    schema = OpSchema(
        name_of(call),
        domain_of(call),
        _VERSION,
        inputs=parameters[:inputs],
        outputs=parameters[inputs:],
        type_constraints=kinds,
        attributes=[OpSchema.Attribute(_NUMBER, OpSchema.AttrType.INT, required=False)],
    )
    return values.Op(values.Opset(domain_of(call), _VERSION), name_of(call), schema)


def calls_in(graph: ir.Graph, calls: Sequence[OperatorCall]) -> list[tuple[ir.Node, OperatorCall]]:
    """The nodes that are calls, without their mark."""
    domains = {domain_of(call) for call in calls}
    marked = [node for node in graph if node.domain in domains]
    return [(node, calls[node.attributes.pop(_NUMBER).as_int()]) for node in marked]

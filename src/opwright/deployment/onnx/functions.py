"""The ONNX functions of a model: one for each operator and kind of arguments."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch
from torch.fx import Node

from opwright.deployment.onnx.bodies import Body, body_of
from opwright.deployment.onnx.nodes import domain_of, name_of
from opwright.deployment.programs.exported import OperatorCall
from opwright.ir.names.fresh import fresh


class Functions:
    """Adds functions to a model as they are asked for; calls that compute the same share one.

    Args:
        model: The model.
    """

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._by_kind: dict[Any, str] = {}
        self._by_body: dict[bytes, str] = {}

    def name_for(self, call: OperatorCall) -> str:
        """The name of the function that a call calls, in the domain of its operator.

        Raises:
            DeploymentUnsupported: If ONNX has no operations for what the operator does.
        """
        kind = _kind(call)
        if kind not in self._by_kind:
            self._by_kind[kind] = self._add(call)
        return self._by_kind[kind]

    def _add(self, call: OperatorCall) -> str:
        body = body_of(call, self._model.graph.opset_imports[""])
        function = _function(call, body)
        text: bytes = ir.to_proto(function).SerializeToString()
        if text not in self._by_body:
            taken = {name for domain, name, _ in self._model.functions if domain == function.domain}
            self._by_body[text] = function.name = fresh(function.name, taken)
            for each in (function, *body.functions):
                self._model.functions.setdefault(each.identifier(), each)
        return self._by_body[text]


def _function(call: OperatorCall, body: Body) -> ir.Function:
    declared = [ir.Attr(each.name, each.type, None) for each in body.attributes.values()]
    return ir.Function(domain_of(call), name_of(call), graph=body.graph, attributes=declared)


def _kind(call: OperatorCall) -> tuple[Any, ...]:
    """What the body of a call depends on: dtypes, sizes in the program, and numbers."""
    written = call.signature.bind(tuple(call.node.args), dict(call.node.kwargs))
    return (
        call.operator.name,
        *(
            (value.dtype, str(tuple(given.meta["val"].shape)))
            if isinstance(value, torch.Tensor) and isinstance(given, Node)
            else repr(value)
            for value, given in zip(call.arguments, written, strict=True)
        ),
    )

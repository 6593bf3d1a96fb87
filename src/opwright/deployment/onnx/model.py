"""Exported → an ONNX model in one of its three forms."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import onnx_ir as ir
from onnx_ir.passes.common import ClearMetadataAndDocStringPass, InlinePass, RemoveUnusedOpsetsPass

from opwright.deployment.onnx.attributes import attributes_of
from opwright.deployment.onnx.exporter import to_onnx
from opwright.deployment.onnx.functions import Functions
from opwright.deployment.onnx.nodes import calls_in, translations
from opwright.deployment.programs.exported import Exported, OperatorCall
from opwright.ir.names.fresh import fresh

Form = Literal["function", "decomposed", "custom"]


class Named(Protocol):
    """Gives the nodes of calls their names, and makes what is behind these."""

    def name_for(self, call: OperatorCall) -> str:
        """The name of the node for a call, in the domain of its operator."""


def onnx_model(exported: Exported, form: Form, operators: Named | None = None) -> Any:
    """Convert a program.

    Args:
        exported: The program.
        form: What its operators become: functions, the operations of these, or operators of a library.
        operators: Those of the library.

    Returns:
        The model, as `onnx_ir` has it; its results are called "output", or "output_0", "output_1", …

    Raises:
        DeploymentUnsupported: If ONNX has no operations for a part of it.
    """
    model: ir.Model = to_onnx(exported.program, translations(exported.calls), None)
    nodes = calls_in(model.graph, exported.calls)
    behind = operators or Functions(model)
    for node, call in nodes:
        node.attributes.update(attributes_of(call))
        node.op_type = behind.name_for(call)
    if form == "decomposed":
        InlinePass()(model)
    RemoveUnusedOpsetsPass()(model)
    ClearMetadataAndDocStringPass()(model)  # lines of the user's files
    _name_outputs(model.graph)
    model.producer_name = "opwright"
    return model


def _name_outputs(graph: ir.Graph) -> None:
    """Call them "output", or "output_0", "output_1", …: the exporter calls them after operations of the model."""
    taken = {str(v.name) for v in (*graph.inputs, *(v for node in graph for v in node.outputs))}
    for place, output in enumerate(graph.outputs):
        if not output.is_graph_input():
            output.name = fresh("output" if len(graph.outputs) == 1 else f"output_{place}", taken)

"""The files of an ONNX deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import onnx_ir as ir

from opwright.deployment.onnx.data_sets import data_sets, write_data_sets
from opwright.deployment.onnx.model import Form, onnx_model
from opwright.deployment.programs.exported import Exported
from opwright.deployment.programs.target import Options

_LARGEST_FILE = 2**31 - 2**20  # a protocol buffer holds 2 GiB; beyond it weights need a file of their own


def write(exported: Exported, folder: Path, options: Options) -> dict[str, Any]:
    """Write the model and its test data.

    Raises:
        DeploymentUnsupported: If ONNX has no operations for a part of the model.
    """
    form = cast(Form, options.operators or "function")
    model = onnx_model(exported, form)
    weights = sum(each.const_value.nbytes for each in model.graph.initializers.values())
    outside = "model.onnx.data" if weights > _LARGEST_FILE else None
    ir.save(model, folder / "model.onnx", external_data=outside)
    sets = data_sets(exported)
    write_data_sets(folder, sets)
    return {"operators": form, "library": None, "allowed_by_set": [list(each.allowed) for each in sets]}

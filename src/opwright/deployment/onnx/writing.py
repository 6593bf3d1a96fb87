"""The files of an ONNX deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import onnx_ir as ir

from opwright.deployment.onnx.custom.library import build_library
from opwright.deployment.onnx.custom.planned import CustomOperators
from opwright.deployment.onnx.data_sets import data_sets, write_data_sets
from opwright.deployment.onnx.model import Form, onnx_model
from opwright.deployment.programs.exported import Exported
from opwright.deployment.programs.target import Options

_LARGEST_FILE = 2**31 - 2**20  # a protocol buffer holds 2 GiB; beyond it weights need a file of their own


def write(exported: Exported, folder: Path, options: Options) -> dict[str, Any]:
    """Write the model and its test data.

    Raises:
        DeploymentUnsupported: If ONNX has no operations for a part of the model, or an operator no kernels for it.
        BuildFailed, CompilerMissing, UnsafeCache, CacheUnusable: As kernels of this process are built.
    """
    form = cast(Form, options.operators or "function")
    operators = CustomOperators() if form == "custom" else None
    model = onnx_model(exported, form, operators)
    weights = sum(each.const_value.nbytes for each in model.graph.initializers.values())
    outside = "model.onnx.data" if weights > _LARGEST_FILE else None
    ir.save(model, folder / "model.onnx", external_data=outside)
    sets = data_sets(exported)
    write_data_sets(folder, sets)
    library = None
    if operators is not None and operators.operators:
        library = build_library(exported.name, operators.operators, folder, options.settings).name
    return {"operators": form, "library": library, "allowed_by_set": [list(each.allowed) for each in sets]}

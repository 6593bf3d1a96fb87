"""The numbers that operators are called with, as attributes of ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from opwright.deployment.programs.exported import OperatorCall
from opwright.ir.names.identifiers import identifiers


def attributes_of(call: OperatorCall) -> dict[str, ir.Attr]:
    """The arguments that are no tensors, as attributes.

    A float is a float of ONNX, which has 32 bits, if these hold it, else a tensor of float64 without dimensions.
    """
    names = identifiers([parameter.name for parameter in call.signature.parameters])
    named = {name: _attribute(name, value) for name, value in zip(names, call.arguments, strict=True)}
    return {name: attribute for name, attribute in named.items() if attribute is not None}


def _attribute(name: str, value: Any) -> ir.Attr | None:
    match value:
        case bool() | int() if -(2**63) <= value < 2**63:
            return ir.AttrInt64(name, int(value))
        case float() if not _is_float32(value):
            return ir.AttrTensor(name, ir.tensor(np.asarray(value, np.float64)))
        case float():
            return ir.AttrFloat32(name, value)
        case str():
            return ir.AttrString(name, value)
        case torch.dtype():
            return ir.AttrString(name, str(value))
        case _:
            return None


def _is_float32(value: float) -> bool:
    with np.errstate(over="ignore"):
        return value != value or float(np.float32(value)) == value

"""Operations that are not recorded as they are, or do not compute."""

from __future__ import annotations

import torch
from torch._ops import OpOverload

aten = torch.ops.aten

SILENT = {
    "prim::device",
    "prim::layout",
    "prim::dtype",
    "aten::size",
    "aten::is_same_size",
    "aten::_has_same_storage_numel",
    "aten::result_type",
    "aten::promote_types",
    "aten::can_cast",
}
"""Queries that are not recorded."""

FORWARDING = {aten.detach.default, aten.alias.default, aten.lift_fresh.default}
"""They only rename a value."""

LIFTS = {aten.lift_fresh.default, aten.lift_fresh_copy.default, aten.lift.default}
"""They bring a constant into the trace."""

LOOKS_FOR_NAN = {aten._is_any_true.default, aten._local_scalar_dense.default}
"""The operations of anomaly mode on gradients."""


def gives_tensors(func: OpOverload) -> bool:
    """Whether an operation computes; others ask for a size or a device."""
    return any("Tensor" in str(returned.type) for returned in func._schema.returns)

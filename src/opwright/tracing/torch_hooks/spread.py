"""DTensor's parts that are not public: its description with the sizes of the whole, and making one without collectives.

tests/tracing/torch_hooks/test_spread.py guards each.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes, _get_current_dispatch_mode_stack

_MODULE = "torch.distributed.tensor"
_NOTHING = nullcontext()


def has_spread(args: Sequence[Any]) -> bool:
    """Whether one of the arguments is a DTensor; does not import them, which takes 0.3 s."""
    module = sys.modules.get(_MODULE)
    kind = getattr(module, "DTensor", None)
    return kind is not None and any(isinstance(arg, kind) for arg in args)


def spec_of(tensor: Any) -> Any:
    """The description of a DTensor: its mesh, placements and whole sizes; it can be hashed."""
    return tensor._spec


def is_usual(spec: Any) -> bool:
    """Whether the dimensions of the mesh cut the tensor in their own order, as placements say by themselves."""
    usual = spec.is_default_device_order(spec.shard_order)
    return bool(usual) and all(type(p).__name__ in ("Shard", "Replicate", "Partial") for p in spec.placements)


def cuts_of(placement: Any) -> int:
    """Into how many blocks a dimension is cut before each is spread: 1 for `Shard`; 0 if nothing is spread."""
    match type(placement).__name__:
        case "Shard":
            return 1
        case "_StridedShard":
            return int(placement.split_factor)
        case _:
            return 0


def cut(dim: int, cuts: int) -> Any:
    """The placement that spreads a dimension, cut into blocks before."""
    from torch.distributed.tensor.placement_types import Shard, _StridedShard

    return Shard(dim) if cuts == 1 else _StridedShard(dim, split_factor=cuts)


def local_of(tensor: Any) -> torch.Tensor:
    """What this process has of a DTensor, when it has arrived."""
    local: Any = tensor._local_tensor
    if type(local) is not torch.Tensor and hasattr(local, "wait"):
        local = local.wait()
    assert isinstance(local, torch.Tensor)
    return local


def spec_for(mesh: Any, placements: Sequence[Any], like: torch.Tensor) -> Any:
    """A description of a tensor whose whole has the sizes, strides and dtype of another."""
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta

    return DTensorSpec(mesh, tuple(placements), TensorMeta(like.shape, like.stride(), like.dtype))


def spread(local: torch.Tensor, spec: Any) -> Any:
    """A DTensor of what this process has, made as torch's dispatcher does: without `__init__`, which asks compilers."""
    kind = sys.modules[_MODULE].DTensor
    return kind.__new__(kind, local, spec, requires_grad=False)


def replicates_implicitly() -> bool:
    """Whether `torch.distributed.tensor.experimental.implicit_replication` is on: all processes have plain tensors."""
    return bool(sys.modules[_MODULE].DTensor._op_dispatcher._allow_implicit_replication)


def only_counted() -> bool:
    """Whether the only modes count collectives: `torch.distributed.tensor.debug.CommDebugMode`, perhaps several."""
    if torch._C._len_torch_function_stack():
        return False
    modes = _get_current_dispatch_mode_stack()
    return all(type(mode).__name__ == "CommDebugMode" for mode in modes)


def uncounted() -> AbstractContextManager[Any]:
    """Without modes, if there are any: kernels hold no collectives."""
    return _disable_current_modes() if torch._C._len_torch_dispatch_stack() else _NOTHING

"""Parts: parameters that are DTensors, whose kernels update what this process has of them.

An update element by element needs nothing of other processes, if parameter, gradient and states lie alike. Whether it
is one is decided from what all processes know, the whole sizes, dtypes and placements, so that none waits for others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import torch

from opwright.binding.environment import PLAIN_TYPES
from opwright.tracing.torch_hooks.spread import has_spread, local_of, spec_for, spec_of, spread

Specs = Mapping[str, Any]
"""By the name of an operand, how its whole lies: that of a DTensor."""


def specs_of_parts(
    param: torch.Tensor, grad: torch.Tensor, kept: Mapping[str, torch.Tensor], *, written: bool
) -> Specs | None:
    """How the operands of an update lie; None if they are not DTensors whose parts can be updated by themselves.

    Args:
        param: The parameter.
        grad: Its gradient. It may be placed otherwise, and is then placed like the parameter first.
        kept: Its states, by name: DTensors that lie like the parameter, or plain tensors without dimensions.
        written: Whether gradients are written, so that they must lie like the parameter too.
    """
    if not has_spread([param]) or not param.dim() or param.is_complex() or not has_spread([grad]):
        return None
    own, of_grad = spec_of(param), spec_of(grad)
    if any(placement.is_partial() for placement in own.placements) or own.mesh != of_grad.mesh:
        return None
    if written and of_grad.placements != own.placements:
        return None
    found = {"param": own, "grad": spec_for(own.mesh, own.placements, grad)}
    for name, state in kept.items():
        if has_spread([state]):
            spec = spec_of(state)
            if state.shape != param.shape or spec.mesh != own.mesh or spec.placements != own.placements:
                return None
            found[name] = spec
        elif state.dim() or type(state) not in PLAIN_TYPES:
            return None
    return found


def part_of(tensor: torch.Tensor, like: Any = None) -> torch.Tensor:
    """What this process has of a DTensor, after it is placed like a spec; other tensors as they are."""
    if not has_spread([tensor]):
        return tensor
    if like is not None and spec_of(tensor).placements != like.placements:
        tensor = tensor.redistribute(placements=like.placements)  # type: ignore[attr-defined]  # a DTensor
    return local_of(tensor)


def whole_of(tensors: Mapping[str, torch.Tensor], specs: Specs | None) -> dict[str, torch.Tensor]:
    """Parts as DTensors around the same memory."""
    return {name: spread(t, specs[name]) if specs and name in specs else t for name, t in tensors.items()}


def place_of(tensor: torch.Tensor) -> Any:
    """What changes when a tensor moves: the address, also that of the part of a DTensor."""
    return part_of(tensor).data_ptr() if has_spread([tensor]) or type(tensor) in PLAIN_TYPES else None


def placed_alike(specs: Specs | None) -> Hashable:
    """What is the same for parameters whose parts are on the same processes."""
    return None if specs is None else (specs["param"].mesh, tuple(specs["param"].placements))


def number_of(specs: Specs | None) -> int:
    """The number of the part that this process has; processes with the same part have the same number."""
    if specs is None:
        return 0
    mesh, found = specs["param"].mesh, 0
    here = mesh.get_coordinate() or [0] * mesh.ndim
    for count, own, placement in zip(mesh.shape, here, specs["param"].placements, strict=True):
        found = found if placement.is_replicate() else found * count + own
    return found


def rounded_in_parts(
    rounded: Callable[[torch.Tensor, torch.dtype], torch.Tensor],
) -> Callable[[torch.Tensor, torch.dtype], torch.Tensor]:
    """A function of elements, for DTensors too."""

    def each(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if not has_spread([value]):
            return rounded(value, dtype)
        from torch.distributed.tensor import DTensor, Replicate  # 0.3 s, and there is one already

        placements = [Replicate() if p.is_partial() else p for p in spec_of(value).placements]
        value = value.redistribute(placements=placements)  # type: ignore[attr-defined]  # a DTensor
        made = rounded(local_of(value), dtype)
        mesh = spec_of(value).mesh
        return DTensor.from_local(made, mesh, placements, run_check=False, shape=value.shape, stride=value.stride())

    return each


def same_everywhere(seed: int, params: Sequence[torch.Tensor]) -> int:
    """The seed of the first process, for all processes of the meshes of parameters."""
    meshes = list(dict.fromkeys(spec_of(param).mesh for param in params if has_spread([param])))
    for mesh in meshes * len(meshes):  # meshes that share some processes hand it on
        from torch.distributed.tensor import Replicate, distribute_tensor  # as above

        if mesh.get_coordinate() is not None:
            given = torch.tensor([seed], dtype=torch.int64, device=mesh.device_type)
            seed = int(part_of(distribute_tensor(given, mesh, [Replicate()] * mesh.ndim)))
    return seed

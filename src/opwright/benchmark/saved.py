"""saved: how many bytes each contender keeps from the forward pass for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from opwright.checking.calls import fresh, outputs_of, tracked
from opwright.checking.finding import one_line
from opwright.samples import Sample


@dataclass(frozen=True, slots=True)
class Kept:
    """What one contender keeps on one sample; memory is counted once, however many tensors are in it.

    Attributes:
        sample: The name of the sample.
        contender: "composed", a rung, or "torch.compile".
        arguments_bytes: Of arguments that are kept, which exist anyway.
        results_bytes: Of results that are kept, which exist anyway.
        extra_bytes: Of all else.
        reason: Why it could not be measured; empty if it could.
    """

    sample: str
    contender: str
    arguments_bytes: int = 0
    results_bytes: int = 0
    extra_bytes: int = 0
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as values that `json.dumps` takes."""
        return asdict(self)


def kept_by(sample: Sample, contenders: Mapping[str, Callable[..., Any]]) -> list[Kept]:
    """Run the forward pass of each contender, and count what autograd saves in it.

    Args:
        sample: The arguments; all that can require a gradient do.
        contenders: By name.
    """
    return [_kept(sample, name, contenders[name]) for name in contenders]


def _kept(sample: Sample, name: str, function: Callable[..., Any]) -> Kept:
    call = tracked(fresh(sample))
    saved: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor)
        return tensor

    try:
        outputs_of(function, call)  # builds, and allocates what only a first call does
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            outputs = outputs_of(function, call)
    except Exception as error:
        return Kept(sample.name, name, reason=one_line(error))
    given, made = _memory(call.tensors()), _memory(outputs)
    kept = _memory(saved)
    return Kept(
        sample.name,
        name,
        sum(size for place, size in kept.items() if place in given),
        sum(size for place, size in kept.items() if place in made and place not in given),
        sum(size for place, size in kept.items() if place not in given and place not in made),
    )


def _memory(tensors: list[torch.Tensor]) -> dict[int, int]:
    """The bytes of each piece of memory, by its address."""
    return {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}

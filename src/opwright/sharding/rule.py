"""A rule: on which placements of its arguments an operator runs shard by shard, and what its results are then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from opwright.sharding.split.stages import Split

REPLICATE = Replicate()


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for one dimension of a mesh.

    Attributes:
        name: What is spread: "batch (x dimension 0)", say.
        inputs: One placement for each tensor among the arguments.
        outputs: One for each tensor among the results.
        powers: For each result, the power of (own size / whole size) of the axis by which it is multiplied after the
            kernels ran: 1 for a mean, whose kernels divide by the size of their own part; 0 for most results.
        even: Whether it holds only if all parts of the axis have one size.
        split: The stages between which reductions over the axis are put together; None if there are none.
    """

    name: str
    inputs: tuple[Placement, ...]
    outputs: tuple[Placement, ...]
    powers: tuple[int, ...]
    even: bool = False
    split: Split | None = field(default=None, repr=False)

    @property
    def shards(self) -> bool:
        """Whether an argument is spread."""
        return any(isinstance(placement, Shard) for placement in self.inputs)

    def to_dict(self) -> dict[str, Any]:
        """Return it as values that `json.dumps` takes."""
        return {
            "name": self.name,
            "inputs": [told(placement) for placement in self.inputs],
            "outputs": [told(placement) for placement in self.outputs],
            "even": self.even,
            "reductions": self.split.collectives if self.split else 0,
        }

    def __str__(self) -> str:
        given, made = (", ".join(map(told, placements)) for placements in (self.inputs, self.outputs))
        return f"{given} → {made}"


@dataclass(frozen=True, slots=True)
class Told:
    """Why there is no rule for something.

    Attributes:
        name: What would be spread.
        why: The fact.
    """

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def told(placement: Placement) -> str:
    """A placement in the words of `torch.distributed.tensor`: "Shard(0)", "Replicate()", "Partial(sum)"."""
    match placement:
        case Shard(dim=dim):
            return f"Shard({dim})"
        case Partial(reduce_op=function):
            return f"Partial({function})"
        case _:
            return "Replicate()"

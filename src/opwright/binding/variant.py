"""A variant: the kernels of one operator for one dtype, rank and broadcast pattern.

    plan    = what lowering decided, as plain data: it can be written down and found again in another process
    variant = the plan with its libraries loaded
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from opwright.binding.kernel import Kernel, load_kernel
from opwright.toolchain.source import Source

SavePolicy = Literal["auto", "inputs", "all"]


@dataclass(frozen=True, slots=True)
class Saved:
    """What the forward pass keeps for the backward pass.

    Attributes:
        arguments: Positions of tensor arguments that the backward kernel reads, in its order.
        intermediates: How many values the forward kernel gives out after its outputs.
        sizes: Sizes that the backward kernel is given as numbers: (argument, dimension).
        contributing: Positions of tensor arguments whose values the gradients depend on.
    """

    arguments: tuple[int, ...]
    intermediates: int
    sizes: tuple[tuple[int, int], ...]
    contributing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a variant consists of.

    Attributes:
        forward: The source of the forward pass.
        backward: The source of the backward pass; None when no gradient was asked for.
        outputs: How many tensors the operator returns.
        bare: Whether it returns one tensor instead of a tuple.
        tensors: Positions of the arguments that are tensors.
        tangents: Positions of the outputs that have an incoming gradient.
        gradients: For each result of the backward kernel, the position of the argument it belongs to.
        saved: What crosses to the backward pass.
    """

    forward: Source
    backward: Source | None
    outputs: int
    bare: bool
    tensors: tuple[int, ...]
    tangents: tuple[int, ...]
    gradients: tuple[int, ...]
    saved: Saved

    @property
    def sources(self) -> tuple[Source, ...]:
        """What has to be built."""
        return (self.forward,) if self.backward is None else (self.forward, self.backward)

    def to_record(self) -> dict[str, Any]:
        """Plain data for the record store."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Plan:
        """The inverse of `to_record`, also after a passage through JSON."""
        saved = record["saved"]
        return cls(
            forward=Source(**record["forward"]),
            backward=Source(**record["backward"]) if record["backward"] else None,
            outputs=record["outputs"],
            bare=record["bare"],
            tensors=tuple(record["tensors"]),
            tangents=tuple(record["tangents"]),
            gradients=tuple(record["gradients"]),
            saved=Saved(
                arguments=tuple(saved["arguments"]),
                intermediates=saved["intermediates"],
                sizes=tuple((argument, dimension) for argument, dimension in saved["sizes"]),
                contributing=tuple(saved["contributing"]),
            ),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """A plan with its kernels loaded.

    Attributes:
        plan: What was decided.
        forward: Tensors in, outputs and intermediates out.
        backward: Saved tensors, sizes and incoming gradients in, gradients out.
        forward_single: Whether `forward` returns one bare tensor.
        backward_single: Whether `backward` does.
    """

    plan: Plan
    forward: Kernel
    backward: Kernel | None
    forward_single: bool
    backward_single: bool


def load_variant(plan: Plan, libraries: Sequence[Path]) -> Variant:
    """Load the built libraries of a plan."""
    kernels = [load_kernel(path, source.name) for path, source in zip(libraries, plan.sources, strict=True)]
    return Variant(
        plan=plan,
        forward=kernels[0],
        backward=kernels[1] if plan.backward else None,
        forward_single=plan.outputs + plan.saved.intermediates == 1,
        backward_single=len(plan.gradients) == 1,
    )

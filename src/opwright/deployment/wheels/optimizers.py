"""What a wheel holds of an optimizer. `optim/shipping` plans it; the floors keep it from being imported here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.deployment.wheels.planned import Serving
from opwright.errors import WheelUnsupported
from opwright.toolchain.source import Source


@dataclass(frozen=True, slots=True)
class OptimizerKernels:
    """The kernels of an optimizer.

    Attributes:
        records: For each kind of parameters, by its text, what the decorator's module reads of its kernels.
        sources: Of all kernels.
    """

    records: Mapping[str, Sequence[Mapping[str, Any]]]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class PlannedOptimizer:
    """An optimizer's part of a wheel.

    Attributes:
        function: Its definition, which has its name.
        decorator: What makes an optimizer of the definition in a wheel, in place of `opwright.optimizer`.
        derive: Finds its kernels.
        agrees: Whether a class that was made of the definition's text has the same steps.
    """

    function: Callable[..., Any]
    decorator: Callable[..., Any]
    derive: Callable[[], OptimizerKernels]
    agrees: Callable[[Any], bool]

    @property
    def name(self) -> str:
        """What it is called in Python."""
        return self.function.__name__

    @functools.cached_property
    def kernels(self) -> OptimizerKernels:
        """Its kernels, found when they are asked for: after the text of the definition."""
        return self.derive()

    def record(self) -> dict[str, Any]:
        """What the module of the decorator reads, as JSON."""
        return {"name": self.name, "kernels": self.kernels.records}


def plan_optimizers(
    given: Sequence[Any], dtypes: Sequence[torch.dtype], kinds: Sequence[Serving]
) -> list[PlannedOptimizer]:
    """Plan for optimizers, classes and single ones; those of one class together.

    Raises:
        WheelUnsupported: If something is no optimizer of opwright, or a wheel cannot hold it.
    """
    by_class: dict[Any, list[Any]] = {}
    for each in given:
        by_class.setdefault(each if isinstance(each, type) else type(each), []).append(each)
    for cls, members in by_class.items():
        if not hasattr(cls, "plan_for_wheel"):
            name = getattr(members[0], "__name__", cls.__name__)
            raise WheelUnsupported(
                f"{name} is neither an operator nor an optimizer of opwright, and wheels hold nothing else",
                hint="decorate the function with opwright.operator, or the update with opwright.optimizer",
            )
    return [cls.plan_for_wheel(members, dtypes, kinds) for cls, members in by_class.items()]

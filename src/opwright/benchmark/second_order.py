"""second_order: the time of a gradient of a gradient, as in a penalty on gradients or a force that is matched."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from opwright.benchmark.stopwatch import Plan, Thunk, Timing, interleave
from opwright.checking.calls import every_gradient, fresh, outputs_of, random_gradients, reached, tracked
from opwright.checking.finding import Skipped, one_line
from opwright.samples import Sample


@dataclass(frozen=True, slots=True)
class SecondOrder:
    """The time of one contender on one sample.

    Attributes:
        sample: The name of the sample.
        contender: "composed", a rung, or "torch.compile".
        timing: Of the call, its gradients and the gradients of the sum of their squares; None if it cannot do it.
        reason: Why it cannot.
    """

    sample: str
    contender: str
    timing: Timing | None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as values that `json.dumps` takes."""
        return asdict(self)


def second_order(
    sample: Sample, contenders: Mapping[str, Callable[..., Any]], *, plan: Plan | None = None
) -> list[SecondOrder]:
    """Time second derivatives of every contender, in turns. The results are not looked at: `check` does that."""
    thunks: dict[str, Thunk] = {}
    reasons: dict[str, str] = {}
    for name, function in contenders.items():
        try:
            thunks[name] = penalty_of(sample, function)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a compiler, while it compiles
                thunks[name]()
                thunks[name]()
        except Exception as error:
            thunks.pop(name, None)
            reasons[name] = one_line(error)
    timings = interleave(thunks, plan=plan) if thunks else {}
    return [SecondOrder(sample.name, name, timings.get(name), reasons.get(name, "")) for name in contenders]


def penalty_of(sample: Sample, function: Callable[..., Any]) -> Thunk:
    """The gradients of the sum of squares of the gradients.

    Raises:
        Skipped: No result is differentiable.
    """
    call = tracked(fresh(sample))
    inputs = [tensor for tensor in call.tensors() if tensor.requires_grad]
    cotangents = random_gradients(outputs_of(function, call))

    def penalty() -> object:
        gradients = every_gradient(reached(outputs_of(function, call)), inputs, cotangents, create_graph=True)
        squares = [gradient.pow(2).sum() for gradient in gradients if gradient.requires_grad]
        if not squares:
            raise Skipped("the gradients do not depend on the arguments")
        return every_gradient(torch.stack(squares).sum(), inputs)

    return penalty

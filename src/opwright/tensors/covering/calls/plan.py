"""Plan: one call of a function that PyTorch accepts, found by trying.

overloads × values ─→ the first call that works on dense tensors, and variants of it with one more argument each
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from opwright.tensors.covering.calls.known import is_known, known_arguments
from opwright.tensors.covering.calls.values import OTHER, SAMPLE, Place, candidates, variants
from opwright.tensors.spellings.overloads import MISSING, Overload, Parameter

MOST_TRIES = 60


@dataclass(frozen=True, slots=True)
class Plan:
    """A call, with `SAMPLE` and `OTHER` in the places of its tensors.

    Attributes:
        args: The arguments by position.
        kwargs: The arguments by name.
        given: The name of the argument that this call has more than the plain one; empty for that.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    given: str = ""

    def filled(self, values: Mapping[Place, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, with values in the places."""
        return [_fill(each, values) for each in self.args], {
            name: _fill(each, values) for name, each in self.kwargs.items()
        }

    @property
    def places(self) -> set[Place]:
        """The places that it has."""
        return {place for each in (*self.args, *self.kwargs.values()) for place in _places(each)}

    def swapped(self) -> Plan:
        """The call of a spelling that takes the first two arguments in the other order."""
        return Plan((self.args[1], self.args[0], *self.args[2:]), self.kwargs, self.given)


def plans(function: Callable[..., Any], overloads: Sequence[Overload], dense: torch.Tensor) -> tuple[Plan, ...]:
    """A call of a function that works on a dense tensor, then variants of it; none if no call was found.

    Args:
        function: What to call, with dense tensors.
        overloads: Its overloads.
        dense: The dense tensor of the sample.
    """
    if is_known(function):
        found = known_arguments(function, dense)
        plan = None if found is None else Plan(found)
        return (plan,) if plan is not None and runs(function, plan, dense) else ()
    for overload in overloads:
        if plan := _working(function, overload, dense):
            others = [each for each in overloads if each is not overload]
            return (plan, *_variants(function, plan, overload, dense), *_of_others(function, overload, others, dense))
    return ()


def _working(function: Callable[..., Any], overload: Overload, dense: torch.Tensor) -> Plan | None:
    for plan in itertools.islice(_tries(overload, dense), MOST_TRIES):
        if SAMPLE in plan.places and runs(function, plan, dense):
            return plan
    return None


def _of_others(
    function: Callable[..., Any], overload: Overload, others: Sequence[Overload], dense: torch.Tensor
) -> Iterator[Plan]:
    """Calls that fit other overloads, by what these take that the first does not: `rounding_mode` of torch.div."""
    known = {parameter.name for parameter in overload.parameters}
    for other in others:
        needed = [each.name for each in other.parameters if each.default is MISSING and each.name not in known]
        if needed and (plan := _working(function, other, dense)):
            known.update(needed)
            yield Plan(plan.args, plan.kwargs, needed[0])


def runs(function: Callable[..., Any], plan: Plan, dense: torch.Tensor) -> bool:
    """Whether a call works on dense tensors."""
    args, kwargs = plan.filled(dense_values(dense))
    try:
        return function(*args, **kwargs) is not NotImplemented
    except Exception:  # whatever PyTorch says of a call that is only a guess
        return False


def dense_values(dense: torch.Tensor) -> dict[Place, Any]:
    """New tensors for the places: the sample's, and another of its shape and dtype."""
    return {SAMPLE: dense.detach().clone(), OTHER: other_of(dense)}


def other_of(dense: torch.Tensor) -> torch.Tensor:
    """Another tensor of the shape and the dtype of the sample's, without zeros where numbers can be halved."""
    if not (dense.is_floating_point() or dense.is_complex()):
        return dense.detach().clone() if dense.dtype is torch.bool else dense.detach() // 2 + 1
    return dense.detach() / 2 + 0.75


def _tries(overload: Overload, dense: torch.Tensor) -> Iterator[Plan]:
    needed = [each for each in overload.parameters if each.default is MISSING]
    if not any("Tensor" in each.type or each.type == "Any" for each in needed):
        return
    for values in itertools.product(*(candidates(each, dense) for each in needed)):
        yield _plan(needed, _second_is_other(values))
    first = [candidates(each, dense)[0] for each in needed]
    for each in overload.parameters:  # such as clamp, which needs one of its two bounds
        for value in variants(each, dense) if each.default is not MISSING else ():
            plan = _plan(needed, _second_is_other(first))
            yield Plan(plan.args, {**plan.kwargs, each.name: value})


def _second_is_other(values: Sequence[Any]) -> list[Any]:
    """The sample stands in one place; tensors after it are another."""
    found, placed = False, []
    for value in values:
        placed.append(OTHER if value is SAMPLE and found else value)
        found = found or SAMPLE in _places(value)
    return placed


def _plan(needed: Sequence[Parameter], values: Sequence[Any]) -> Plan:
    pairs = list(zip(needed, values, strict=True))
    return Plan(
        tuple(value for each, value in pairs if not each.is_keyword),
        {each.name: value for each, value in pairs if each.is_keyword},
    )


def _variants(function: Callable[..., Any], plan: Plan, overload: Overload, dense: torch.Tensor) -> Iterator[Plan]:
    for parameter in overload.parameters:
        if parameter.default is MISSING:
            continue
        for value in variants(parameter, dense):
            variant = Plan(plan.args, {**plan.kwargs, parameter.name: value}, parameter.name)
            if runs(function, variant, dense):
                yield variant
                break


def _fill(value: Any, values: Mapping[Place, Any]) -> Any:
    if isinstance(value, Place):
        return values[value]
    if isinstance(value, list):
        return [_fill(each, values) for each in value]
    return value.clone() if isinstance(value, torch.Tensor) else value


def _places(value: Any) -> list[Place]:
    if isinstance(value, Place):
        return [value]
    return [each for each in value if isinstance(each, Place)] if isinstance(value, list) else []

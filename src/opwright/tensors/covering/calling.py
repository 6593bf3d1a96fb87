"""Calling: a spelling with objects of a type in the places of a plan, as a user calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from opwright.tensors.covering.calls.plan import Plan, other_of
from opwright.tensors.covering.calls.values import OTHER, SAMPLE
from opwright.tensors.covering.subject import Subject
from opwright.tensors.spellings.aliases import OPERATORS
from opwright.tensors.spellings.table import Spelling

Side = Literal["first", "second", "both"]

_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a spelling with a sample on a side.

    Attributes:
        spelling: What is called.
        subject: The type.
        plan: The arguments.
        side: Where the sample stands.
    """

    spelling: Spelling
    subject: Subject
    plan: Plan
    side: Side

    def made(self, sample: Any) -> Any:
        """Its result for a sample."""
        args, kwargs = self.plan.filled(typed(sample, self.subject.dense(sample), self.side))
        return invoke(self.spelling, args, kwargs)


def typed(sample: Any, dense: torch.Tensor, side: Side) -> dict[Any, Any]:
    """What stands in the places of a plan."""
    return {
        SAMPLE: sample if side != "second" else dense.clone(),
        OTHER: sample if side != "first" else other_of(dense),
    }


def invoke(spelling: Spelling, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a spelling as a user does: methods on their object, so that a type's own methods are called."""
    if not spelling.is_method:
        return spelling.function(*args, **kwargs)
    if spelling.is_attribute:
        return getattr(args[0], spelling.attribute)
    result = getattr(args[0], spelling.attribute)(*args[1:], **kwargs)
    return _of_the_other(spelling.attribute, args) if result is NotImplemented else result


def _of_the_other(attribute: str, args: list[Any]) -> Any:
    """What Python does with an operator whose first method returns NotImplemented: the second's has its turn.

    Raises:
        TypeError: It has none, or this returns NotImplemented too.
    """
    word = attribute.strip("_")
    plain = word.removeprefix("i") if word.removeprefix("i") in OPERATORS else word
    partner = _MIRRORED.get(plain) or (plain[1:] if plain not in OPERATORS else f"r{plain}")
    method = getattr(args[1], f"__{partner}__", None) if len(args) > 1 else None
    result = method(args[0]) if method is not None else NotImplemented
    if result is NotImplemented:
        raise TypeError(f"{type(args[0]).__name__}.{attribute} returns NotImplemented")
    return result

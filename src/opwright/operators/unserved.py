"""Calls that kernels do not serve although they were derived for their arguments: what that depends on is no size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwright.binding.environment import require_gradients
from opwright.binding.variants.variant import Plan
from opwright.errors import NoKernel, Place
from opwright.tracing.interface.memory import given_twice


def refuse_unserved(plan: Plan, names: Sequence[str], arguments: Sequence[Any], place: Place) -> None:
    """Refuse a call that the kernels of a plan fall through for.

    Args:
        plan: What was derived.
        names: Those of the parameters.
        arguments: One for each.
        place: Where the function is defined.

    Raises:
        NoKernel: If they do.
    """
    if plan.asks_for_identity and (twice := given_twice(arguments)):
        first, again = (names[position] for position in twice[0])
        fact = f"it asks which tensors are the same one, as {first} and {again} are"
        raise NoKernel(fact, place=place, hint="pass a view: x.view_as(x)")
    if plan.records_unasked and require_gradients(arguments):
        fact = "it switches gradients on for what it returns, where its caller switched them off"
        raise NoKernel(fact, place=place, hint="switch them on around its calls")

"""Calls in which outputs are computed from others go by C++, where nodes see the gradients that flow between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwright.binding.variants.variants import Variants
from opwright.errors import StillBuilding


def run_in_cpp(variants: Variants, args: Sequence[Any], *, pinned: bool) -> Any:
    """Run such a call in C++; NotImplemented for another one, or if that does not know it, as there is no module.

    Raises:
        StillBuilding: If the module is being built, and the function as written may serve meanwhile.
    """
    if not variants.has_fed:
        return NotImplemented
    if variants.awaits_native and not pinned:
        raise StillBuilding("the hot path in C++ is still being built", hint="set OPWRIGHT_TAPE=now to wait for it")
    return NotImplemented if variants.play_pinned is None else variants.play_pinned(*args)

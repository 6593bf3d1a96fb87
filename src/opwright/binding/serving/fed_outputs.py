"""Calls in which outputs are computed from others go by C++, where nodes see the gradients that flow between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opwright.binding.serving.numbers import Numbers, as_called
from opwright.binding.variants.variants import Variants
from opwright.errors import StillBuilding


def run_in_cpp(
    variants: Variants, args: Sequence[Any], numbers: Numbers, needed: Mapping[int, bool], *, pinned: bool
) -> Any:
    """Run such a call in C++; NotImplemented for another one, or if that does not know it, as there is no module.

    Args:
        variants: The kernels, with one for such calls.
        args: The arguments; numbers that kernels take at run time may be tensors.
        numbers: What is known of the operator's numbers: C++ has to know, too, which of them stay constants.
        needed: By position, whether a number is needed for its current value only, as in `Numbers.settle`.
        pinned: Whether the function as written may not serve.

    Raises:
        StillBuilding: If the module is being built, and the function as written may serve meanwhile.
    """
    if not variants.has_fed:
        return NotImplemented
    if variants.awaits_native and not pinned:
        raise StillBuilding("the hot path in C++ is still being built", hint="set OPWRIGHT_TAPE=now to wait for it")
    called = as_called(args)
    numbers.settle(called, needed)
    variants.keep_up()
    return NotImplemented if variants.play_pinned is None else variants.play_pinned(*called)

"""Random numbers that a backward pass draws again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from opwright.tracing.torch_hooks.functorch import depth, drawing_alike_above


@dataclass(frozen=True, slots=True)
class Draw:
    """The state of random numbers.

    Attributes:
        generator: The state of the generator before the draw.
        levels: How many transforms of `torch.func` are active. Later ones, such as the `vmap` of `torch.func.jacrev`,
            map gradients of the drawn numbers, and draw none of their own.
    """

    generator: torch.Tensor
    levels: int

    @classmethod
    def here(cls) -> Draw:
        """The current state."""
        return cls(torch.get_rng_state(), depth())


def noting_draws(function: Callable[..., Any], *args: Any) -> tuple[Any, Draw | None]:
    """Call a function; return its result, and the state before it if it drew numbers."""
    here = Draw.here()
    returned = function(*args)
    return returned, None if torch.equal(here.generator, torch.get_rng_state()) else here


@contextmanager
def drawn_again(draw: Draw | None) -> Iterator[None]:
    """Draw the same numbers until the end of the block; then restore the generator. None changes nothing."""
    if draw is None:
        yield
        return
    with torch.random.fork_rng(devices=()), drawing_alike_above(draw.levels):
        torch.set_rng_state(draw.generator)
        yield

"""Random numbers that a backward pass draws again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


def noting_draws(function: Callable[..., Any], *args: Any) -> tuple[Any, torch.Tensor | None]:
    """Call a function; give what it returned, and where the generator was before if it drew numbers."""
    before = torch.get_rng_state()
    returned = function(*args)
    return returned, None if torch.equal(before, torch.get_rng_state()) else before


@contextmanager
def drawn_again(state: torch.Tensor | None) -> Iterator[None]:
    """Draw from `state` until the end of the block; then go on where the generator was. None changes nothing."""
    if state is None:
        yield
        return
    with torch.random.fork_rng(devices=()):
        torch.set_rng_state(state)
        yield

"""Random numbers that a backward pass draws again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

Made = TypeVar("Made")


def noting_draws(run: Callable[[], Made]) -> tuple[Made, torch.Tensor | None]:
    """Run something; give what it made, and where the generator was before if it drew numbers."""
    before = torch.get_rng_state()
    made = run()
    return made, None if torch.equal(before, torch.get_rng_state()) else before


@contextmanager
def drawn_again(state: torch.Tensor | None) -> Iterator[None]:
    """Draw from `state` until the end of the block; then go on where the generator was. None changes nothing."""
    if state is None:
        yield
        return
    with torch.random.fork_rng(devices=()):
        torch.set_rng_state(state)
        yield

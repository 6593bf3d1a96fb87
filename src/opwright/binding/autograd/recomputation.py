"""Checkpoints end their second forward pass with an error, when the last tensor that they need has been saved.

By then a kernel has run. Whoever writes its values into buffers, or into arguments of `mutates=`, finds them with the
error, and writes them as in the first pass; `native/player.h` does so in C++.
"""

from __future__ import annotations

from typing import Any

_MADE = "opwright_made"


def ends_recomputation(error: Exception) -> bool:
    """Whether it is PyTorch's error, whose module is imported by programs that use checkpoints."""
    return type(error).__name__ == "_StopRecomputationError"


def note_made(error: Exception, made: Any) -> None:
    """Keep what a kernel has made with the error."""
    setattr(error, _MADE, made)


def take_made(error: Exception) -> Any:
    """What a kernel had made before the error; None if none had."""
    made = getattr(error, _MADE, None)
    if made is not None:
        delattr(error, _MADE)
    return made

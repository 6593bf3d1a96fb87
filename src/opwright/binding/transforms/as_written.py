"""Calls under transforms of functions that have no kernels: each runs once, as written, at the level of the call.

Below that level it would run for its value, and once more for its gradients: with other random numbers, with effects
that happen twice, and without what records gradients.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class RunsAsWritten(Exception):
    """The function is to run at the level at which its operator was called.

    Args:
        settle: What is to be done if it raises nothing there, such as to warn.
    """

    def __init__(self, settle: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.settle = settle


class BelowTransforms(threading.local):
    """Whether calls on this thread are made below the level of a call that takes `RunsAsWritten`."""

    is_entered = False


below_transforms = BelowTransforms()

"""The transforms of an operator for a call made now, whose gradients may be computed later."""

from __future__ import annotations

from typing import Any

from opwright.binding.transforms.transformed import Transformable, Transformed
from opwright.binding.variants.states import Outside


class TransformsNow:
    """The transforms of one operator, in the state at the time of creation.

    Args:
        transforms: Its transforms, in any state.
        outside: What its function reads outside of its arguments.
    """

    def __init__(self, transforms: Transformed, outside: Outside) -> None:
        self._transforms = transforms
        self._state = outside.now()
        self.jvp = transforms.jvp
        self.batched = transforms.batched

    def backward(self, *which: Any) -> Transformable:
        """The operator of the gradients, see `Family.backward`.

        Raises:
            OutsideChanged: If the function reads another value by now, so that the gradients would be wrong.
        """
        self._state.ensure_same()
        return self._transforms.backward(*which)

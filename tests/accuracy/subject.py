"""A subject: a function whose error is measured, and the kinds of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tests.accuracy.draws import FLOATING_RANGES, Shape


@dataclass(frozen=True, slots=True)
class Subject:
    """A function, and the kinds of its arguments.

    Attributes:
        function: Takes tensors and returns one tensor.
        kinds: The kind of each argument: a key of `draws.KINDS`.
        ranges: The ranges of its arguments: keys of `draws.RANGES`.
        dtypes: Names of the dtypes that it is measured in.
        fits: Whether it takes arguments of a shape.
    """

    function: Callable[..., Tensor]
    kinds: str = "x"
    ranges: tuple[str, ...] = FLOATING_RANGES
    dtypes: tuple[str, ...] = ("float32", "bfloat16")
    fits: Callable[[Shape], bool] = lambda shape: True

    def __call__(self, *arguments: Any) -> Tensor:
        """Apply the function."""
        return self.function(*arguments)

"""Samples of the ready operators: tensors of given shapes, filled with what the operator is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from opwright.samples import MadeWhenAskedFor, Sample, Shapes, shapes

Fill = Callable[[torch.Tensor, Sequence[torch.Tensor]], torch.Tensor]
"""Makes an argument of normal numbers, and of all arguments as normal numbers."""

_CHECKED = ((5, 33, 4, 3), (16, 70, 6, 2))
MEASURED = ("small", "medium", "large")


@dataclass(frozen=True, slots=True)
class Filled:
    """An argument: its shape, in the grammar of `opwright.shapes`, what is in it, and whether it has no gradient."""

    shape: str
    fill: Fill | None
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sample factory: calls that an operator is checked with, and those that it is measured with.

    Attributes:
        checked: Shapes of the calls to check.
        at: Shapes of the calls to measure: small, medium, large.
        fills: How each argument is made of normal numbers; None for those that stay so.
        constant: Whether an argument is measured without a gradient.
    """

    checked: Shapes
    at: Shapes
    fills: tuple[Fill | None, ...]
    constant: tuple[bool, ...]

    def __call__(self, device: str, dtype: torch.dtype) -> Sequence[Sample]:
        """Return the calls to check, each made when it is asked for."""
        plain = self.checked(device, dtype)
        return MadeWhenAskedFor(len(plain), lambda index: self._filled(plain[index]))

    def small(self, device: str, dtype: torch.dtype) -> list[Sample]:
        """Return tiny calls, then those where sizes are 1 and 0."""
        return [self._filled(sample) for sample in self.checked.small(device, dtype)]

    def measured(self, size: str, device: str, dtype: torch.dtype) -> Sample:
        """Return the call to measure at a size: "small", "medium" or "large"."""
        index = MEASURED.index(size)
        alone = replace(self.at, sizes=self.at.sizes[index : index + 1])
        return self._filled(alone(device, dtype)[0])

    def _filled(self, sample: Sample) -> Sample:
        pairs = zip(sample.args, self.fills, strict=True)
        return replace(sample, args=tuple(fill(arg, sample.args) if fill else arg for arg, fill in pairs))


def drawn(*arguments: str | Filled, **sizes: tuple[int, int, int]) -> Drawn:
    """Describe the samples of an operator by its arguments.

    Args:
        arguments: The shape of each; normal numbers unless it says otherwise, as `positive("N C")` does.
        sizes: For every letter the small, the medium and the large size that are measured.
    """
    given = [Filled(each, None) if isinstance(each, str) else each for each in arguments]
    specs = [each.shape for each in given]
    checked: Mapping[str, tuple[int, ...]] = {
        letter: tuple(each[index % len(each)] for each in _CHECKED) for index, letter in enumerate(sizes)
    }
    fills, constant = tuple(each.fill for each in given), tuple(each.constant for each in given)
    return Drawn(shapes(*specs, **checked), shapes(*specs, **sizes), fills, constant)


def table(shape: str) -> Filled:
    """Normal numbers that are a constant of a model, such as cosines of positions."""
    return Filled(shape, None, constant=True)


def positive(shape: str) -> Filled:
    """Numbers above zero, most of them between 0.4 and 2.7."""
    return Filled(shape, lambda normal, _: normal.exp())


def fractions(shape: str) -> Filled:
    """Numbers between zero and one."""
    return Filled(shape, lambda normal, _: normal.sigmoid())


def mask(shape: str) -> Filled:
    """Booleans, three of ten of them true."""
    return Filled(shape, lambda normal, _: normal > 0.52)


def classes(shape: str) -> Filled:
    """Classes: integers below the last size of the first argument."""

    def fill(normal: torch.Tensor, arguments: Sequence[torch.Tensor]) -> torch.Tensor:
        return (normal.double().abs() * 10_000).long() % max(arguments[0].shape[-1], 1)

    return Filled(shape, fill)


def boxes(shape: str) -> Filled:
    """Boxes as two corners along the last axis, of size 4: left, top, right, bottom."""

    def fill(normal: torch.Tensor, _: Sequence[torch.Tensor]) -> torch.Tensor:
        corner, size = normal[..., :2], normal[..., 2:].exp()
        return torch.cat([corner, corner + size], dim=-1)

    return Filled(shape, fill)

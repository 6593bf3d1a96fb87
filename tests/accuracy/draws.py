"""Draw inputs: kinds of arguments, in ranges that are numerically difficult in different ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Generator, Tensor

Shape = tuple[int, int]
Draw = Callable[[Shape, Generator], Tensor]

_DELICATE_POINTS = (-20.0, -3.0, -1.0, -0.5, 0.0, 0.5, 0.6931472, 1.0, 3.0, 20.0)


def _normal(shape: Shape, generator: Generator) -> Tensor:
    return 2 * torch.randn(shape, generator=generator, dtype=torch.float64)


def _large(shape: Shape, generator: Generator) -> Tensor:
    return 160 * torch.rand(shape, generator=generator, dtype=torch.float64) - 80


def _tiny(shape: Shape, generator: Generator) -> Tensor:
    exponents = -8 * torch.rand(shape, generator=generator, dtype=torch.float64)
    return torch.randn(shape, generator=generator, dtype=torch.float64) * 10**exponents


def _delicate(shape: Shape, generator: Generator) -> Tensor:
    points = torch.tensor(_DELICATE_POINTS, dtype=torch.float64)
    chosen = points[torch.randint(len(points), shape, generator=generator)]
    return chosen + 0.02 * torch.randn(shape, generator=generator, dtype=torch.float64)


def _sorted(shape: Shape, generator: Generator) -> Tensor:
    return _normal(shape, generator).flatten().sort().values.reshape(shape)


def _offset(shape: Shape, generator: Generator) -> Tensor:
    return 1000 + _normal(shape, generator)


RANGES: Mapping[str, Draw] = {
    "normal": _normal,
    "large": _large,
    "tiny": _tiny,
    "delicate": _delicate,
    "sorted": _sorted,
    "offset": _offset,
}
FLOATING_RANGES = ("normal", "large", "tiny", "delicate", "sorted")
ROW_RANGES = (*FLOATING_RANGES, "offset")


def _plain(draw: Draw, shape: Shape, generator: Generator) -> Tensor:
    return draw(shape, generator)


def _positive(draw: Draw, shape: Shape, generator: Generator) -> Tensor:
    return draw(shape, generator).abs() + 1e-3


def _fraction(draw: Draw, shape: Shape, generator: Generator) -> Tensor:
    """Inside of (0, 1), also after rounding to bfloat16."""
    return torch.sigmoid(draw(shape, generator)).clamp(0.01, 0.99)


def _sign(draw: Draw, shape: Shape, generator: Generator) -> Tensor:
    return 2.0 * torch.randint(2, shape, generator=generator, dtype=torch.float64) - 1


def _mask(draw: Draw, shape: Shape, generator: Generator) -> Tensor:
    """A mask that keeps some of each row."""
    kept = torch.rand(shape, generator=generator) < 0.7
    kept[:, 0] = True
    kept[0, :] = True
    return kept


def _classes(draw: Draw, shape: Shape, generator: Generator) -> Tensor:
    return torch.randint(shape[1], shape[:1], generator=generator)


def _per_column(draw: Draw, shape: Shape, generator: Generator) -> Tensor:
    return torch.randn(shape[1:], generator=generator, dtype=torch.float64)


KINDS: Mapping[str, Callable[[Draw, Shape, Generator], Tensor]] = {
    "x": _plain,
    "p": _positive,
    "u": _fraction,
    "s": _sign,
    "m": _mask,
    "t": _classes,
    "w": _per_column,
}
GRADIENTS = "xpuw"
"""The kinds that have gradients."""


def draw_arguments(kinds: str, range_name: str, shape: Shape, seed: int) -> list[Tensor]:
    """Draw one argument of each kind, in float64 where it is floating."""
    generator = torch.Generator().manual_seed(seed)
    return [KINDS[kind](RANGES[range_name], shape, generator) for kind in kinds]

"""Numbers with units: what cannot be added is refused, products multiply the units."""

from __future__ import annotations

from typing import Any

import torch

import opwright.tensors


class Quantity(opwright.tensors.Like):
    """A tensor of numbers, and the powers of their units: Quantity(x, m=1, s=-2)."""

    def __init__(self, numbers: torch.Tensor, **units: int) -> None:
        self.numbers = numbers
        self.units = {unit: power for unit, power in sorted(units.items()) if power}

    shape = property(lambda self: self.numbers.shape)

    def densify(self) -> torch.Tensor:
        if self.units:
            raise TypeError(f"{self} has units: a plain number has none")
        return self.numbers


Quantity.fallback("densify")  # of what has no unit


def parts(value: Any) -> tuple[Any, dict[str, int]]:
    return (value.numbers, value.units) if isinstance(value, Quantity) else (value, {})


@Quantity.implements(torch.add)
def add(input: Any, other: Any, *, alpha: float = 1) -> Quantity:
    (x, units), (y, others) = parts(input), parts(other)
    if units != others:
        raise TypeError(f"{units} and {others} cannot be added")
    return Quantity(torch.add(x, y, alpha=alpha), **units)


@Quantity.implements(torch.mul)
def mul(input: Any, other: Any) -> Quantity:
    (x, units), (y, others) = parts(input), parts(other)
    return Quantity(torch.mul(x, y), **{unit: units.get(unit, 0) + others.get(unit, 0) for unit in {**units, **others}})


@Quantity.implements(torch.sum)
def total(input: Quantity, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Quantity:
    return Quantity(torch.sum(input.numbers, dim, keepdim, dtype=dtype), **input.units)


if __name__ == "__main__":
    way, force = Quantity(torch.tensor([1.0, 2.0]), m=1), Quantity(torch.tensor([3.0, 4.0]), kg=1, m=1, s=-2)
    print((way * force).sum(), way + way)
    try:
        way + force
    except TypeError as error:
        print(error)

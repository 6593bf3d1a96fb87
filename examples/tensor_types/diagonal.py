"""A diagonal matrix: its products and inverse cost as much as its diagonal, and gradients reach that."""

from __future__ import annotations

from typing import Any

import torch

import opwright.tensors


class Diagonal(opwright.tensors.Like):
    """The matrix with the given diagonal, a tensor of shape [n]."""

    def __init__(self, diagonal: torch.Tensor) -> None:
        self.diagonal_values = diagonal

    def densify(self) -> torch.Tensor:
        return torch.diag(self.diagonal_values)


Diagonal.fallback("densify")


@Diagonal.implements(torch.matmul)
def matmul(input: Any, other: Any) -> Any:
    if isinstance(input, Diagonal) and isinstance(other, Diagonal):
        return Diagonal(input.diagonal_values * other.diagonal_values)
    if isinstance(input, Diagonal):
        column = input.diagonal_values if other.ndim == 1 else input.diagonal_values[:, None]
        return column * other
    return input * other.diagonal_values


@Diagonal.implements(torch.mul)
def mul(input: Any, other: Any) -> Any:
    if isinstance(input, (int, float)):
        input, other = other, input
    if isinstance(input, Diagonal) and isinstance(other, Diagonal):
        return Diagonal(input.diagonal_values * other.diagonal_values)
    if isinstance(input, Diagonal) and isinstance(other, (int, float)):
        return Diagonal(input.diagonal_values * other)
    return torch.mul(*(each.densify() if isinstance(each, Diagonal) else each for each in (input, other)))


@Diagonal.implements(torch.linalg.inv)
def inverse(A: Diagonal) -> Diagonal:  # noqa: N803
    return Diagonal(1 / A.diagonal_values)


if __name__ == "__main__":
    values = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    d = Diagonal(values)
    print(torch.inverse(d) @ torch.ones(3), 2 * d, d.exp())
    torch.nn.functional.linear(torch.ones(2, 3), d).sum().backward()
    print(values.grad)

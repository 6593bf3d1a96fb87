"""A multiple of the identity, which needs two numbers where its matrix needs n²."""

from __future__ import annotations

from typing import Any

import torch

import opwright.tensors


class ScalarTensor(opwright.tensors.Like):
    """The matrix value·I of n rows."""

    def __init__(self, n: int, value: float) -> None:
        self.n, self.value = n, value

    def densify(self) -> torch.Tensor:
        return self.value * torch.eye(self.n)


@ScalarTensor.implements(torch.mean)
def mean(input: ScalarTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> torch.Tensor:
    if dim is None and not keepdim:
        return torch.tensor(input.value / input.n, dtype=dtype)
    return torch.mean(input.densify(), dim, keepdim, dtype=dtype)


@ScalarTensor.implements(torch.add)
def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    if isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor):
        if input.n != other.n:
            raise ValueError(f"matrices of {input.n} and {other.n} rows cannot be added")
        return ScalarTensor(input.n, input.value + alpha * other.value)
    return torch.add(dense(input), dense(other), alpha=alpha)


@ScalarTensor.implements(torch.matmul)
def matmul(input: Any, other: Any) -> Any:
    if isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor):
        return ScalarTensor(input.n, input.value * other.value)
    return input.value * other if isinstance(input, ScalarTensor) else input * other.value


def dense(value: Any) -> Any:
    return value.densify() if isinstance(value, ScalarTensor) else value


if __name__ == "__main__":
    d = ScalarTensor(5, 2.0)
    print(d, torch.mean(d), d.shape)  # ScalarTensor(n=5, value=2.0) tensor(0.4000) torch.Size([5, 5])
    print(d + d, d @ d)
    print(torch.ones(5) @ d, (1 - torch.ones(5, 5)) + d)

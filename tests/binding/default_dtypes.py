"""Functions whose results depend on torch's default dtype, for comparing operators with them under each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def quotient_of_integers(n: Tensor, x: Tensor) -> Tensor:
    return n / (n * n + 3) + torch.sin(x)


def integers_times_a_float(n: Tensor, x: Tensor) -> Tensor:
    return torch.tanh(n * 0.1) * x


def sine_of_integers(n: Tensor, x: Tensor) -> Tensor:
    return torch.sin(n) + torch.exp(-n.abs()) * x


def tensor_of_a_float(n: Tensor, x: Tensor) -> Tensor:
    return torch.tanh(x) * torch.tensor([0.1, 0.7, 0.3]) + torch.tensor(0.1)


def number_without_dimensions(n: Tensor, x: Tensor) -> Tensor:
    return torch.tensor(0.1) * torch.tensor(0.3) + torch.cos(x)


def factories(n: Tensor, x: Tensor) -> Tensor:
    return torch.cos(x) * (torch.full((3,), 0.1) + torch.ones(3) / 3) + torch.zeros(3)


def ranges(n: Tensor, x: Tensor) -> Tensor:
    return torch.sin(x) * torch.arange(0.0, 0.9, 0.3) + torch.linspace(0.0, 0.1, 3)


def read_by_the_function(n: Tensor, x: Tensor) -> Tensor:
    wide = torch.get_default_dtype() is torch.float64
    return torch.sin(x) * (2.0 if wide else 3.0) + torch.finfo().eps * n.to(torch.get_default_dtype())


def mean_of_integers(n: Tensor, x: Tensor) -> Tensor:
    return (n * 0.7).mean() + torch.sqrt(n.abs() + 0.5).sum() * torch.sigmoid(x)


def imaginary(n: Tensor, x: Tensor) -> Tensor:
    return torch.view_as_real((n * 0.3j + 0.1).exp())[..., 0] + torch.sin(x)


def complex_factory(n: Tensor, x: Tensor) -> Tensor:
    return (torch.tensor(0.1 + 0.3j) * torch.cos(x)).abs() + n


def comparison(n: Tensor, x: Tensor) -> Tensor:
    return torch.where(n * 0.1 > 0.15, torch.sin(x), torch.where(n > 0.5, 0.1, n / 3))


def truth(n: Tensor, x: Tensor) -> Tensor:
    return (n > 0) * 0.1 + (x > 0) / 3 + torch.sin(x)


def normalized(n: Tensor, x: Tensor) -> Tensor:
    return functional.layer_norm(n / 7 + x, (3,)) + functional.softmax(n * 0.3, -1)


def powers(n: Tensor, x: Tensor) -> Tensor:
    return n**0.5 + 2.0**n + n.abs().float() ** 0.3 + torch.sin(x)


def sizes_as_numbers(n: Tensor, x: Tensor) -> Tensor:
    return torch.sin(x) / x.shape[0] + n / x.numel()


FUNCTIONS = (
    quotient_of_integers, integers_times_a_float, sine_of_integers, tensor_of_a_float, number_without_dimensions,
    factories, ranges, read_by_the_function, mean_of_integers, imaginary, complex_factory, comparison, truth,
    normalized, powers, sizes_as_numbers,
)  # fmt: skip

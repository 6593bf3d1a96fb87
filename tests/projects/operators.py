"""Operators to eject, small ones; what they use stands around them."""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.nn.functional import gelu as smooth

import opwright
from opwright import Sample

SLOPE = 0.25


def leak(x):
    return torch.where(x > 0, x, SLOPE * x)


@opwright.operator(samples=opwright.shapes("B S", "B S", B=4, S=24))
def leaky_gate(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """One kernel forward, one backward."""
    return leak(x) * torch.sigmoid(gate) * math.pi


@opwright.operator(samples=opwright.shapes("B S", B=(8, 32), S=(5, 70)))
def row_softmax(x: Tensor, dim: int = -1) -> Tensor:
    return F.softmax(x, dim)


@opwright.operator(samples=opwright.shapes("B S", "S", "S", B=16, S=64))
def affine_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps) * weight + bias


@opwright.operator(samples=opwright.shapes("B M", "N M", "N", B=16, M=32, N=48))
def linear_gelu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return smooth(F.linear(x, weight, bias))


@opwright.operator(samples=opwright.shapes("B S", "B S", B=16, S=32))
def value_and_place(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A result that nothing flows through beside one that something does."""
    return leak(x) + y, x.argmax(-1)


def power_samples(device, dtype):
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(4, 6, generator=generator, dtype=torch.float64).to(device, dtype) + 0.5
    yield Sample((x, 2))
    yield Sample((x, 3))
    yield Sample((x,), {"scale": 2.5})
    yield Sample((x,), {"scale": 1.5, "shift": 4})
    yield Sample((x[:, :1], 2))


@opwright.operator(samples=power_samples)
def power(x: torch.Tensor, n: int = 2, *, scale: float = 1.0, shift: int = 0) -> torch.Tensor:
    """A constant, and numbers that change from call to call."""
    return scale * x**n + shift


def projections(device, dtype):
    generator = torch.Generator().manual_seed(2)
    x, weight, bias = (torch.randn(size, generator=generator).to(device, dtype) for size in ((5, 7), (3, 7), (3,)))
    yield Sample((x, weight, bias))
    yield Sample((x, weight, None))


@opwright.operator(samples=projections)
def project(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """An argument that may be left out."""
    return torch.sigmoid(F.linear(x, weight, bias))


def targets(device, dtype):
    generator = torch.Generator().manual_seed(3)
    yield Sample((torch.randn(6, 9, generator=generator).to(device, dtype), torch.tensor([0, 3, 8, 2, 1, 5])))


@opwright.operator(samples=targets)
def mean_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits, target)


@opwright.operator(samples=opwright.shapes("N 3", N=40))
def directions(x: torch.Tensor) -> torch.Tensor:
    """A last dimension of three, for which there are kernels beside those for all sizes."""
    return x / x.norm(dim=-1, keepdim=True)


@opwright.operator(samples=opwright.shapes("B S", "B S", B=16, S=32))
def plus_twice(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Nothing is kept for its gradient."""
    return x + 2 * y


@opwright.operator(samples=opwright.shapes("B C H H", "K C 3 3", B=2, C=3, H=8, K=4))
def conv_squared(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.conv2d(x, weight).relu().square()


def rotations(device, dtype):
    generator = torch.Generator().manual_seed(4)
    wide = torch.complex64 if dtype == torch.float32 else torch.complex128
    yield Sample((torch.randn(6, 9, generator=generator, dtype=torch.complex128).to(device, wide),))


@opwright.operator(samples=rotations)
def rotate(z: torch.Tensor) -> torch.Tensor:
    return z * z.conj() + 1j * z


def tokens(device, dtype):
    generator = torch.Generator().manual_seed(5)
    table = torch.randn(12, 8, generator=generator).to(device, dtype)
    yield Sample((torch.tensor([[0, 11, 3], [3, 3, 7]], device=device), table))


@opwright.operator(samples=tokens)
def embedded(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Loads by index, and what checks the indices before them."""
    return torch.tanh(F.embedding(ids, table)) * 2


ASSORTED = (
    *(row_softmax, affine_norm, linear_gelu, value_and_place, power, project, mean_loss, directions, plus_twice),
    *(conv_squared, rotate, embedded),
)

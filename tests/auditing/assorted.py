"""Operators of every kind, for the audit: `python -m tests.auditing.assorted` prints what is red."""

import sys
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import opwright
from opwright.samples import Sample, shapes

ROWS = shapes("B S", B=4, S=8)
TWO = shapes("B S", "B S", B=4, S=8)
OPERATORS = []


def numbers(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def one(make):
    """One sample: the arguments that `make(dtype)` returns."""
    return lambda device, dtype: [Sample(make(dtype))]


def listed(samples, **options):
    def make(reference):
        operator = opwright.operator(name=f"assorted::{reference.__name__}", samples=samples, **options)(reference)
        OPERATORS.append(operator)
        return operator

    return make


@listed(ROWS)
def wave(x: Tensor) -> Tensor:
    return torch.sin(x) * x


@listed(TWO)
def two_results(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sin(x) * y, x * torch.sigmoid(y)


@listed(shapes("B 3*S", "B S", B=4, S=8))
def cell(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    new_cell = old_cell + F.elu(g) * torch.sigmoid(i)
    return torch.tanh(new_cell) * torch.sigmoid(o), new_cell


@listed(ROWS)
def gelu(x: Tensor) -> Tensor:
    return F.gelu(x)


@listed(ROWS)
def kinks(x: Tensor) -> Tensor:
    return F.relu(x) + x.clamp(-1, 1) + x.abs()


@listed(ROWS)
def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, dim=-1)


@listed(shapes("B S", "S", "S", B=4, S=8))
def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


@listed(shapes("B S", "S", B=4, S=8))
def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


@listed(one(lambda dtype: (numbers(5, 7, dtype=dtype), torch.tensor([0, 6, 3, 3, 1]))))
def cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(x, target)


@listed(ROWS)
def row_sums(x: Tensor) -> Tensor:
    return torch.exp(x).sum(-1)


@listed(ROWS)
def column_means(x: Tensor) -> Tensor:
    return (x * x).mean(0)


@listed(ROWS)
def mean_of_all(x: Tensor) -> Tensor:
    return torch.tanh(x).mean()


@listed(ROWS)
def variance(x: Tensor) -> Tensor:
    return x.var(-1)


@listed(ROWS)
def running_sum(x: Tensor) -> Tensor:
    return torch.cumsum(torch.sin(x), dim=-1)


@listed(shapes("B 2*S", B=4, S=8))
def gated(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * torch.sigmoid(b), a + b], dim=-1).transpose(0, 1)


@listed(shapes("B S", "S", B=4, S=8))
def broadcast(x: Tensor, y: Tensor) -> Tensor:
    return torch.atan(x) * y + y


@listed(shapes("B F", "S F", "S", B=4, F=8, S=16))
def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.tanh(F.linear(x, weight, bias))


@listed(shapes("B S D", "B S D", "B S D", B=2, S=4, D=8))
def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1) @ value


@listed(one(lambda dtype: (numbers(2, 3, 6, 6, dtype=dtype), numbers(4, 3, 3, 3, seed=1, dtype=dtype))))
def convolution(x: Tensor, weight: Tensor) -> Tensor:
    return torch.sigmoid(F.conv2d(x, weight, padding=1))


@listed(TWO)
def with_integers(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x * y, x > y, (x > 0).to(torch.int64) * 3


@listed(ROWS)
def largest(x: Tensor) -> tuple[Tensor, Tensor]:
    values, places = torch.max(x * x, dim=-1)
    return values, places


@listed(ROWS)
def place_of_largest(x: Tensor) -> Tensor:
    return x.argmax(-1)


@listed(ROWS)
def without_bias(x: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.tanh(x) if bias is None else torch.tanh(x) + bias


@listed(lambda device, dtype: [Sample((numbers(4, 8, dtype=dtype), 1.5), {"power": 3})])
def scaled(x: Tensor, scale: float = 2.0, power: int = 2) -> Tensor:
    return scale * x**power


@listed(one(lambda dtype: (numbers(dtype=dtype), numbers(seed=1, dtype=dtype))))
def of_no_axis(x: Tensor, y: Tensor) -> Tensor:
    return torch.sin(x) * y


@listed(one(lambda dtype: (numbers(9, 4, dtype=dtype), torch.tensor([[8, 0], [3, 3]]))))
def embedding(weight: Tensor, index: Tensor) -> Tensor:
    return torch.tanh(F.embedding(index, weight))


@listed(one(lambda dtype: (numbers(4, 8, dtype=dtype), numbers(4, 8, seed=1) > 0)))
def masked(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, x * x, -x).masked_fill(mask, 0.5) + x


@listed(one(lambda dtype: (torch.complex(numbers(4, 3), numbers(4, 3, seed=1)),)))
def rotated(z: Tensor) -> tuple[Tensor, Tensor]:
    return z * z.conj() + z, z.abs()


@listed(one(lambda dtype: ([numbers(4, 3, dtype=dtype), numbers(2, 3, seed=1, dtype=dtype)],)))
def joined(parts: list[Tensor]) -> dict[str, Tensor]:
    return {"all": torch.cat([torch.sin(part) for part in parts]), "first": parts[0] * 2}


class State(NamedTuple):
    hidden: Tensor
    cell: Tensor


@listed(one(lambda dtype: (State(numbers(4, 3, dtype=dtype), numbers(4, 3, seed=1, dtype=dtype)),)))
def stepped(state: State) -> State:
    return State(torch.tanh(state.cell) * state.hidden, state.cell * 2)


@listed(TWO, mutates=("x",))
def accumulated(x: Tensor, y: Tensor) -> Tensor:
    x.add_(torch.sin(y))
    return x * y


@listed(ROWS)
def dropped(x: Tensor) -> Tensor:
    return F.dropout(torch.sin(x), 0.5, training=True)


@listed(TWO)
def given_back(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x, x * y


@listed(TWO)
def half_detached(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sin(x) * y, x.detach() * 3


@listed(ROWS)
def turned(x: Tensor) -> Tensor:
    return x.transpose(0, 1)


@listed(ROWS)
def ordered(x: Tensor) -> Tensor:
    return torch.sort(x, dim=-1).values * 2


@listed(shapes("B S D", "S D", B=2, S=4, D=8))
def contracted(x: Tensor, y: Tensor) -> Tensor:
    return torch.einsum("bsd,sd->bs", torch.sin(x), y)


@listed(ROWS)
def kept_numbers(x: Tensor) -> Tensor:
    return x * torch.arange(x.shape[-1], dtype=x.dtype, device=x.device) / x.shape[0]


@listed(ROWS)
def unknown_size(x: Tensor) -> Tensor:
    return torch.sin(x[x > 0]).sum()


def print_red(names: list[str]) -> None:
    for operator in OPERATORS:
        if names and operator.__name__ not in names:
            continue
        scorecard = opwright.audit(operator, quick=True, steps=1000)
        print("\n".join(line for line in str(scorecard).splitlines() if "  skipped:" not in line), flush=True)


if __name__ == "__main__":
    print_red(sys.argv[1:])

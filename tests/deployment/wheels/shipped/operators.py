"""Operators that tests put into wheels, one for each thing that a wheel must get right."""

import torch
import torch.nn.functional as F  # noqa: N812

import opwright

SHIFT = 1


def shifted(x):
    return x + SHIFT


@opwright.operator(samples=opwright.shapes("B 3*S", "B S", B=4, S=3))
def cell(gates: torch.Tensor, old_cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    new = old_cell + F.elu(g) * torch.sigmoid(i)  # the candidate is added
    return torch.tanh(new) * torch.sigmoid(o), new


def floats(device, dtype):
    yield opwright.Sample((torch.randn(4, 3, dtype=dtype), 2.0))


@opwright.operator(name="shipped_scale::scale", samples=floats)
def scale(x: torch.Tensor, factor: float = 3.0, times: int = 1) -> torch.Tensor:
    return shifted(x * factor * times)


@opwright.operator(samples=opwright.shapes("B S", "S", "S", B=4, S=6))
def norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, *, eps: float = 1e-5) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias, eps)


@opwright.operator(samples=opwright.shapes("B S", B=4, S=6))
def dropped(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(torch.sin(x), 0.5, training=True) * x


def indexed(device, dtype):
    yield opwright.Sample((torch.randn(4, 6, dtype=dtype), torch.tensor([3, 0, 2])))


@opwright.operator(samples=indexed)
def gathered(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return torch.exp(x[rows])


@opwright.operator(samples=indexed)
def labelled(x: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    return F.nll_loss(x[: classes.shape[0]], classes, reduction="none")


def scales(device, dtype):
    yield opwright.Sample((torch.randn(4, 6, dtype=dtype), torch.rand(6, dtype=dtype) + 0.5))


@opwright.operator(samples=scales)
def checked(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    if not (scale > 0).all():
        raise ValueError("a scale is not positive")
    return torch.sin(x) + scale


@opwright.operator(samples=opwright.shapes("B S", B=4, S=6))
def largest(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.max(x * x, dim=-1)[0], torch.argmax(x * x, dim=-1)


def switched(device, dtype):
    for upper in (True, False):
        yield opwright.Sample((torch.randn(4, 6, dtype=dtype), upper, "tanh"))


@opwright.operator(samples=switched)
def bounded(x: torch.Tensor, upper: bool, approximate: str = "none") -> torch.Tensor:
    return F.gelu(x.clamp(max=1) if upper else x.clamp(min=-1), approximate=approximate)

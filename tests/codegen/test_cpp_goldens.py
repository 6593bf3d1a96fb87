"""Emitted C++ as it is read: `pytest --update-golden` writes the expected files anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from opwright.operators.stages import derive
from opwright.tracing.interface.specs import TensorSpec

GOLDENS = Path(__file__).parent / "goldens"
Tensor = torch.Tensor


def lltm_cell(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + functional.elu(g) * torch.sigmoid(i)
    return torch.tanh(cell) * torch.sigmoid(o), cell


def scale_and_shift(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Broadcasts a row and a column."""
    return x * scale + shift


def joined(x: Tensor, y: Tensor) -> Tensor:
    """Stores piece by piece."""
    return torch.cat([torch.tanh(x), y * 2], dim=-1)


def projected(x: Tensor, weight: Tensor) -> Tensor:
    """A library call that reads a view."""
    return torch.relu(x[:, 1:] @ weight.mT)


def convolved(x: Tensor, weight: Tensor) -> Tensor:
    """A library call whose sizes are computed."""
    return torch.relu(functional.conv2d(x, weight, stride=2, padding=1))


def softmax(x: Tensor) -> Tensor:
    """Three passes over a row, one of which keeps what it computes for the next."""
    return torch.softmax(x, -1)


def short_rows(x: Tensor, mask: Tensor) -> Tensor:
    """Rows of which sixteen are taken at once."""
    return torch.softmax(x.masked_fill(mask, float("-inf")), -1)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Reductions of rows and, in the backward, of columns beside them."""
    return functional.layer_norm(x, x.shape[-1:], weight, bias)


def group_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Reshapes before and after the reductions, without a library call."""
    return functional.silu(functional.group_norm(x, 4, weight, bias))


def directions(x: Tensor) -> Tensor:
    """Coordinates: a case for three of them, and steps for any number."""
    return x / x.norm(dim=-1, keepdim=True)


def mean_square(x: Tensor) -> Tensor:
    """One row is all there is: it is cut into pieces."""
    return (x * x).mean()


CASES: dict[str, tuple[Callable[..., Any], list[TensorSpec]]] = {
    "lltm_cell": (
        lltm_cell,
        [TensorSpec("gates", torch.float32, (16, 384), True), TensorSpec("old_cell", torch.float32, (16, 128), True)],
    ),
    "scale_and_shift": (
        scale_and_shift,
        [
            TensorSpec("x", torch.float64, (4, 6)),
            TensorSpec("scale", torch.float64, (6,)),
            TensorSpec("shift", torch.float64, (4, 1)),
        ],
    ),
    "joined": (joined, [TensorSpec("x", torch.float32, (4, 6)), TensorSpec("y", torch.float32, (4, 5))]),
    "softmax": (softmax, [TensorSpec("x", torch.float32, (16, 64), True)]),
    "short_rows": (short_rows, [TensorSpec("x", torch.float32, (40, 16)), TensorSpec("mask", torch.bool, (40, 16))]),
    "layer_norm": (
        layer_norm,
        [
            TensorSpec("x", torch.float32, (16, 64), True),
            TensorSpec("weight", torch.float32, (64,), True),
            TensorSpec("bias", torch.float32, (64,), True),
        ],
    ),
    "group_norm": (
        group_norm,
        [
            TensorSpec("x", torch.float32, (3, 8, 5, 6), True),
            TensorSpec("weight", torch.float32, (8,), True),
            TensorSpec("bias", torch.float32, (8,), True),
        ],
    ),
    "directions": (directions, [TensorSpec("x", torch.float32, (16, 3), True)]),
    "mean_square": (mean_square, [TensorSpec("x", torch.bfloat16, (16, 64), True)]),
    "convolved": (
        convolved,
        [TensorSpec("x", torch.float32, (3, 4, 9, 8), True), TensorSpec("weight", torch.float32, (5, 4, 3, 3), True)],
    ),
    "projected": (projected, [TensorSpec("x", torch.float32, (4, 6)), TensorSpec("weight", torch.float32, (3, 5))]),
}


# The versions of PyTorch, and the first after them, that derive these by the formulas of the golden files: others write
# the gradient of SiLU without `sigmoid`, have more guards of convolutions, or multiply in another order.
BY_THESE_FORMULAS = {"group_norm": ((2, 12), (2, 14)), "convolved": ((2, 12), (3,))}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    first, after = BY_THESE_FORMULAS.get(name, ((2,), (3,)))
    if not first <= torch.__version__ < after:
        pytest.skip(f"PyTorch {torch.__version__} derives it by other formulas")
    reference, specs = CASES[name]
    plan = derive(reference, specs, name).plan
    emitted = {"forward": plan.forward.text} | ({"backward": plan.backward.text} if plan.backward else {})
    for pass_name, text in emitted.items():
        golden = GOLDENS / f"{name}_{pass_name}.cpp"
        if request.config.getoption("--update-golden"):
            golden.parent.mkdir(exist_ok=True)
            golden.write_text(text)
        assert golden.read_text() == text, f"{golden.name} is emitted differently; see pytest --update-golden"


def test_emission_is_deterministic() -> None:
    first, second = (derive(*CASES["lltm_cell"], "lltm_cell").plan for _ in range(2))
    assert first == second

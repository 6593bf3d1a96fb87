"""An optimizer of one's own: Lion with a warm-up of its sign, in the lines of its formula.

python examples/optimizer.py
"""

from __future__ import annotations

import torch
from torch import Tensor

import opwright


@opwright.optimizer(state=("average",))
def SoftLion(param: Tensor, grad: Tensor, average: Tensor, step: float, *, lr: float = 1e-2,
             betas: tuple[float, float] = (0.9, 0.99), softness: float = 1.0) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Go by the sign of the averaged gradient, which is soft in the first steps."""
    beta1, beta2 = betas
    direction = beta1 * average + (1 - beta1) * grad
    update = direction / (direction.abs() + softness / step)
    return param - lr * update, beta2 * average + (1 - beta2) * grad


def main() -> None:
    """Fit a line, save the optimizer, and go on."""
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = SoftLion(model.parameters(), lr=0.05, max_grad_norm=1.0)
    x = torch.randn(256, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
    for _ in range(100):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
    saved = optimizer.state_dict()
    SoftLion(model.parameters()).load_state_dict(saved)
    print(f"loss after 100 steps: {loss.item():.4f}")


if __name__ == "__main__":
    main()

"""What an author of optimizers ships."""

from __future__ import annotations

from typing import Any

import torch

import opwright
from opwright.optim import SGD

SMALL = 1e-8
RATE = 0.05


def like_itself(param: torch.Tensor, **_: Any) -> torch.Tensor:
    """The parameter."""
    return param.clone()


def refuse_two_signs(*, lr: float, momentum: float, **_: Any) -> None:
    """Refuse what does not go together."""
    if lr > 1 and momentum:
        raise ValueError("a rate above one has no momentum")


@opwright.optimizer(state=("exp_avg", "exp_avg_sq"))
def Adam(param, grad, exp_avg, exp_avg_sq, step, *, lr=1e-3, betas=(0.9, 0.999), eps=SMALL, weight_decay=1e-2):
    """Adam with decoupled decay."""
    beta1, beta2 = betas
    param = param * (1 - lr * weight_decay)
    exp_avg = beta1 * exp_avg + (1 - beta1) * grad
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
    denominator = (exp_avg_sq / (1 - beta2**step)).sqrt() + eps
    return param - lr / (1 - beta1**step) * exp_avg / denominator, exp_avg, exp_avg_sq


@opwright.optimizer(
    state={
        "buffer": lambda param, momentum, **_: torch.zeros_like(param) if momentum else None,
        "average": like_itself,
    },
    sparse=True,
    check=refuse_two_signs,
)
def Averaged(param, grad, buffer, average, step, *, lr=RATE, momentum=0.0, nesterov=False, warm=0.0):
    """Momentum, warmed up, with the average of the parameters."""
    rate = lr * step / 4 if warm and step < 4 else lr
    if buffer is not None:
        buffer = momentum * buffer + grad
        grad = grad + momentum * buffer if nesterov else buffer
    param = param - rate * grad
    return param, buffer, average + (param - average) / step


@opwright.optimizer(state=("exp_avg",))
def Trusting(param, grad, exp_avg, step, *, lr=RATE, beta=0.9):
    """Steps as long as the parameter, which need a norm."""
    exp_avg = beta * exp_avg + (1 - beta) * grad
    trust = param.square().sum().sqrt() / (exp_avg.square().sum().sqrt() + SMALL)
    return param - lr * trust * exp_avg, exp_avg


@opwright.optimizer()
def ByRank(param, grad, step, *, lr=RATE):
    """Slower for matrices."""
    return (param - (lr / 2 if param.dim() == 2 else lr) * grad,)


@opwright.optimizer()
def WithoutRate(param, grad, step, *, lr):
    """The rate has no default."""
    return (param - lr * grad,)


@opwright.operator(samples=opwright.shapes("A", A=3))
def doubled(x: torch.Tensor) -> torch.Tensor:
    """Twice as much."""
    return x * 2


def plain_update(param, grad, step, *, lr=RATE):
    return (param - lr * grad,)


__all__ = ["SGD", "Adam", "Averaged", "ByRank", "Trusting", "WithoutRate", "doubled"]

"""Adagrad, Adadelta and RMSprop."""

from __future__ import annotations

from typing import Any

import torch

from opwright.optim.decorator import optimizer
from opwright.optim.ready.lerp import lerp
from opwright.optim.ready.refusals import refuse_of_adadelta
from opwright.optim.ready.starts import filled_with, zeros_if

Tensor = torch.Tensor


@optimizer(state={"sum": filled_with("initial_accumulator_value")}, sparse=True, early=True)
def Adagrad(param: Tensor, grad: Tensor, sum: Tensor, step: float, *, lr: float = 1e-2, lr_decay: float = 0.0,
            weight_decay: float = 0.0, initial_accumulator_value: float = 0.0, eps: float = 1e-10) -> Any:  # fmt: skip
    """Adagrad, as torch.optim.Adagrad."""
    if weight_decay != 0:
        grad = grad + weight_decay * param
    sum = sum + grad * grad
    rate = lr / (1 + (step - 1) * lr_decay)
    return param - rate * grad / (sum.sqrt() + eps), sum


@optimizer(state=("square_avg", "acc_delta"), check=refuse_of_adadelta)
def Adadelta(param: Tensor, grad: Tensor, square_avg: Tensor, acc_delta: Tensor, step: float, *, lr: float = 1.0,
             rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0) -> Any:  # fmt: skip
    """Adadelta, as torch.optim.Adadelta."""
    if weight_decay != 0:
        grad = grad + weight_decay * param
    square_avg = rho * square_avg + (1 - rho) * grad * grad
    delta = (acc_delta + eps).sqrt() / (square_avg + eps).sqrt() * grad
    acc_delta = rho * acc_delta + (1 - rho) * delta * delta
    return param - lr * delta, square_avg, acc_delta


@optimizer(state={"square_avg": None, "momentum_buffer": zeros_if("momentum"), "grad_avg": zeros_if("centered")})
def RMSprop(param: Tensor, grad: Tensor, square_avg: Tensor, momentum_buffer: Tensor | None, grad_avg: Tensor | None,
            step: float, *, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
            momentum: float = 0.0, centered: bool = False) -> Any:  # fmt: skip
    """RMSprop, as torch.optim.RMSprop."""
    grad = grad + weight_decay * param if weight_decay != 0 else grad
    square_avg = variance = alpha * square_avg + (1 - alpha) * grad * grad
    if grad_avg is not None and centered:
        grad_avg = lerp(grad_avg, grad, 1 - alpha)
        variance = square_avg - grad_avg * grad_avg
    update = grad / (variance.sqrt() + eps)
    if momentum_buffer is not None and momentum > 0:
        momentum_buffer = update = momentum * momentum_buffer + update
    return param - lr * update, square_avg, momentum_buffer, grad_avg

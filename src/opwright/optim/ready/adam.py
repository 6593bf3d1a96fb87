"""Adam, AdamW, Adamax, NAdam, RAdam and Adan."""

from __future__ import annotations

from typing import Any

import torch

from opwright.optim.decorator import optimizer
from opwright.optim.ready.lerp import lerp
from opwright.optim.ready.refusals import refuse_of_adam
from opwright.optim.ready.starts import number, zeros_if

Tensor = torch.Tensor
Betas = tuple[float, float]


def _adam(param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, max_exp_avg_sq: Tensor | None, step: float,
          lr: float, betas: Betas, eps: float, amsgrad: bool) -> Any:  # fmt: skip
    beta1, beta2 = betas
    exp_avg = lerp(exp_avg, grad, 1 - beta1)
    exp_avg_sq = second = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
    if max_exp_avg_sq is not None and amsgrad:
        max_exp_avg_sq = second = torch.maximum(max_exp_avg_sq, exp_avg_sq)
    denominator = second.sqrt() / (1 - beta2**step) ** 0.5 + eps
    return param - lr / (1 - beta1**step) * exp_avg / denominator, exp_avg, exp_avg_sq, max_exp_avg_sq


@optimizer(state={"exp_avg": None, "exp_avg_sq": None, "max_exp_avg_sq": zeros_if("amsgrad")},
           check=refuse_of_adam)  # fmt: skip
def Adam(param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, max_exp_avg_sq: Tensor | None, step: float,
         *, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
         amsgrad: bool = False, decoupled_weight_decay: bool = False) -> Any:  # fmt: skip
    """Adam, as torch.optim.Adam."""
    if weight_decay != 0 and decoupled_weight_decay:
        param = param * (1 - lr * weight_decay)
    elif weight_decay != 0:
        grad = grad + weight_decay * param
    return _adam(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, betas, eps, amsgrad)


@optimizer(state={"exp_avg": None, "exp_avg_sq": None, "max_exp_avg_sq": zeros_if("amsgrad")},
           check=refuse_of_adam)  # fmt: skip
def AdamW(param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, max_exp_avg_sq: Tensor | None, step: float,
          *, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
          amsgrad: bool = False) -> Any:  # fmt: skip
    """Adam with decoupled weight decay, as torch.optim.AdamW."""
    param = param * (1 - lr * weight_decay)
    return _adam(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, betas, eps, amsgrad)


@optimizer(state=("exp_avg", "exp_inf"))
def Adamax(param: Tensor, grad: Tensor, exp_avg: Tensor, exp_inf: Tensor, step: float, *, lr: float = 2e-3,
           betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0) -> Any:  # fmt: skip
    """Adamax, as torch.optim.Adamax."""
    if weight_decay != 0:
        grad = grad + weight_decay * param
    beta1, beta2 = betas
    exp_avg = lerp(exp_avg, grad, 1 - beta1)
    exp_inf = torch.maximum(exp_inf * beta2, grad.abs() + eps)
    return param - lr / (1 - beta1**step) * exp_avg / exp_inf, exp_avg, exp_inf


@optimizer(state={"exp_avg": None, "exp_avg_sq": None, "mu_product": number(1.0)})
def NAdam(param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, mu_product: Tensor, step: float, *,
          lr: float = 2e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
          momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False) -> Any:  # fmt: skip
    """Adam with Nesterov momentum, as torch.optim.NAdam."""
    if weight_decay != 0 and decoupled_weight_decay:
        param = param * (1 - lr * weight_decay)
    elif weight_decay != 0:
        grad = grad + weight_decay * param
    mu, mu_next = (betas[0] * (1 - 0.5 * 0.96 ** (count * momentum_decay)) for count in (step, step + 1))
    mu_product = mu_product * mu
    exp_avg = lerp(exp_avg, grad, 1 - betas[0])
    exp_avg_sq = betas[1] * exp_avg_sq + (1 - betas[1]) * grad * grad
    denominator = (exp_avg_sq / (1 - betas[1] ** step)).sqrt() + eps
    param = param - lr * (1 - mu) / (1 - mu_product) * grad / denominator
    return param - lr * mu_next / (1 - mu_product * mu_next) * exp_avg / denominator, exp_avg, exp_avg_sq, mu_product


@optimizer(state=("exp_avg", "exp_avg_sq"))
def RAdam(param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, step: float, *, lr: float = 1e-3,
          betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
          decoupled_weight_decay: bool = False) -> Any:  # fmt: skip
    """Rectified Adam, as torch.optim.RAdam."""
    if weight_decay != 0 and decoupled_weight_decay:
        param = param * (1 - lr * weight_decay)
    elif weight_decay != 0:
        grad = grad + weight_decay * param
    beta1, beta2 = betas
    exp_avg = lerp(exp_avg, grad, 1 - beta1)
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
    most = 2 / (1 - beta2) - 1
    length = most - 2 * step * beta2**step / (1 - beta2**step)
    update = lr / (1 - beta1**step) * exp_avg
    if length > 5:
        share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        update = update * (share * (1 - beta2**step)) ** 0.5 / (exp_avg_sq.sqrt() + eps)
    return param - update, exp_avg, exp_avg_sq


@optimizer(state=("exp_avg", "exp_avg_diff", "exp_avg_sq", "previous_grad"))
def Adan(param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_diff: Tensor, exp_avg_sq: Tensor, previous_grad: Tensor,
         step: float, *, lr: float = 1e-3, betas: tuple[float, float, float] = (0.98, 0.92, 0.99), eps: float = 1e-8,
         weight_decay: float = 0.0) -> Any:  # fmt: skip
    """Adan, algorithm 1 of Xie et al., Adaptive Nesterov Momentum Algorithm, 2022 (arXiv:2208.06677).

    The betas are 1 − β of the paper, and the moments are corrected for their start at zero, as in the authors' code.
    """
    beta1, beta2, beta3 = betas
    difference = torch.zeros_like(grad) if step == 1 else grad - previous_grad
    exp_avg = beta1 * exp_avg + (1 - beta1) * grad
    exp_avg_diff = beta2 * exp_avg_diff + (1 - beta2) * difference
    looked_ahead = grad + beta2 * difference
    exp_avg_sq = beta3 * exp_avg_sq + (1 - beta3) * looked_ahead * looked_ahead
    denominator = exp_avg_sq.sqrt() / (1 - beta3**step) ** 0.5 + eps
    update = (exp_avg / (1 - beta1**step) + beta2 * exp_avg_diff / (1 - beta2**step)) / denominator
    return (param - lr * update) / (1 + lr * weight_decay), exp_avg, exp_avg_diff, exp_avg_sq, grad

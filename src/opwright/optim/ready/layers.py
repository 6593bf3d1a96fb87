"""Optimizers that look at a whole tensor, or average: LAMB, Adafactor, Muon and schedule-free AdamW."""

from __future__ import annotations

from typing import Any

import torch

from opwright.optim.decorator import optimizer
from opwright.optim.ready.lerp import lerp
from opwright.optim.ready.refusals import refuse_of_adafactor, refuse_of_muon
from opwright.optim.ready.starts import number

Tensor = torch.Tensor


@optimizer(state=("exp_avg", "exp_avg_sq"))
def LAMB(param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, step: float, *, lr: float = 1e-3,
         betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6, weight_decay: float = 0.0) -> Any:  # fmt: skip
    """LAMB, algorithm 2 of You et al., Large Batch Optimization for Deep Learning, 2020 (arXiv:1904.00962)."""
    beta1, beta2 = betas
    exp_avg = beta1 * exp_avg + (1 - beta1) * grad
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
    ratio = exp_avg / (1 - beta1**step) / ((exp_avg_sq / (1 - beta2**step)).sqrt() + eps)
    update = ratio + weight_decay * param
    size, length = param.square().sum().sqrt(), update.square().sum().sqrt()
    trust = torch.where((size > 0) & (length > 0), size / length, torch.ones_like(size))
    return param - lr * trust * update, exp_avg, exp_avg_sq


def _rows(param: Tensor, **_: Any) -> Tensor | None:
    return param.new_zeros(*param.shape[:-1], 1) if param.dim() > 1 else None


def _columns(param: Tensor, **_: Any) -> Tensor | None:
    return param.new_zeros(*param.shape[:-2], 1, param.shape[-1]) if param.dim() > 1 else None


def _each(param: Tensor, **_: Any) -> Tensor | None:
    return torch.zeros_like(param) if param.dim() < 2 else None


@optimizer(state={"row_var": _rows, "col_var": _columns, "variance": _each}, check=refuse_of_adafactor,
           checks_all=True)  # fmt: skip
def Adafactor(param: Tensor, grad: Tensor, row_var: Any, col_var: Any, variance: Any, step: float, *, lr: float = 1e-2,
              beta2_decay: float = -0.8, eps: Any = (None, 1e-3), d: float = 1.0,
              weight_decay: float = 0.0) -> Any:  # fmt: skip
    """Adafactor, algorithm 5 of Shazeer and Stern, 2018 (arXiv:1804.04235), with the arguments of torch.optim."""
    if param.numel() == 0:
        raise ZeroDivisionError("float division by zero")  # torch divides a norm by the root of the number of elements
    least = torch.finfo(param.dtype).eps if eps[0] is None else eps[0]
    squared, share = grad * grad, step**beta2_decay
    if variance is None:
        row_var = lerp(row_var, squared.mean(-1, keepdim=True), share)
        col_var = lerp(col_var, squared.mean(-2, keepdim=True), share)
        estimate = row_var * col_var / row_var.mean(-2, keepdim=True).clamp(min=least)
    else:
        variance = estimate = lerp(variance, squared, share)
    update = grad / estimate.clamp(min=least * least).sqrt()
    rate = min(lr, 1 / step**0.5) * _greater(param.square().mean().sqrt(), eps[1])
    clipped = _greater(update.square().mean().sqrt() / d, 1.0)
    return param * (1 - lr * weight_decay) - rate / clipped * update, row_var, col_var, variance


def _greater(value: Tensor, least: float) -> Tensor:
    """Python's max(least, value), which is the first where the second is not a number."""
    return torch.where(value > least, value, least)


def _orthogonal(update: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """The nearest semi-orthogonal matrix, nearly, by a Newton-Schulz iteration in bfloat16."""
    a, b, c = coefficients
    is_tall = update.shape[0] > update.shape[1]
    x = update.bfloat16().t() if is_tall else update.bfloat16()
    x = x / x.float().norm().clamp(min=eps).bfloat16()
    for _ in range(steps):
        gram = x @ x.t()
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if is_tall else x


@optimizer(state=("momentum_buffer",), constants=("ns_coefficients",), check=refuse_of_muon, checks_all=True)
def Muon(param: Tensor, grad: Tensor, momentum_buffer: Tensor, step: float, *, lr: float = 1e-3,
         weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
         ns_coefficients: Any = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
         adjust_lr_fn: str | None = None) -> Any:  # fmt: skip
    """Muon of K. Jordan, 2024 (https://kellerjordan.github.io/posts/muon/), with the arguments of torch.optim.Muon."""
    if param.dim() != 2:
        raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}")
    momentum_buffer = lerp(momentum_buffer, grad, 1 - momentum)
    update = lerp(grad, momentum_buffer, momentum) if nesterov else momentum_buffer
    update = _orthogonal(update, ns_coefficients, ns_steps, eps)
    rows, columns = param.shape
    most, tall = (rows, rows**0.5 / columns**0.5) if rows > columns else (columns, 1.0)
    scale = (
        0.2 * most**0.5 if adjust_lr_fn == "match_rms_adamw" else tall if adjust_lr_fn in (None, "original") else 1.0
    )
    return param * (1 - lr * weight_decay) - lr * (scale * update.to(param.dtype)), momentum_buffer


@optimizer(state={"z": lambda param, **_: param.clone(), "average": lambda param, **_: param.clone(),
                  "exp_avg_sq": None, "weight_sum": number(0.0)})  # fmt: skip
def ScheduleFreeAdamW(param: Tensor, grad: Tensor, z: Tensor, average: Tensor, exp_avg_sq: Tensor, weight_sum: Tensor,
                      step: float, *, lr: float = 2.5e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                      weight_decay: float = 0.0, warmup_steps: int = 0) -> Any:  # fmt: skip
    """AdamW without a schedule, algorithm 1 of Defazio et al., The Road Less Scheduled, 2024 (arXiv:2405.15682).

    The parameter is the point of the gradient; evaluate the model with the state "average".
    """
    rate = lr * min(1.0, step / warmup_steps) if warmup_steps else lr
    exp_avg_sq = betas[1] * exp_avg_sq + (1 - betas[1]) * grad * grad
    update = grad / ((exp_avg_sq / (1 - betas[1] ** step)).sqrt() + eps) + weight_decay * param
    z = z - rate * update
    weight_sum = weight_sum + rate * rate
    average = average + rate * rate / weight_sum * (z - average)
    return betas[0] * average + (1 - betas[0]) * z, z, average, exp_avg_sq, weight_sum

"""SGD, ASGD, Rprop and Lion."""

from __future__ import annotations

from typing import Any

import torch

from opwright.optim.decorator import optimizer
from opwright.optim.ready.refusals import refuse_of_asgd, refuse_of_rprop, refuse_of_sgd
from opwright.optim.ready.starts import filled_with, number, zeros_if

Tensor = torch.Tensor


@optimizer(state={"momentum_buffer": zeros_if("momentum")}, sparse=True, check=refuse_of_sgd, checks_all=True,
           restarts=("momentum_buffer",))  # fmt: skip
def SGD(param: Tensor, grad: Tensor, momentum_buffer: Tensor | None, step: float, *, lr: float = 1e-3,
        momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False
        ) -> Any:  # fmt: skip
    """Stochastic gradient descent, as torch.optim.SGD."""
    if weight_decay != 0:
        grad = grad + weight_decay * param
    if momentum_buffer is not None and momentum != 0:
        new = grad if dampening == 0 or step == 1 else (1 - dampening) * grad
        momentum_buffer = momentum * momentum_buffer + new
        grad = grad + momentum * momentum_buffer if nesterov else momentum_buffer
    return param - lr * grad, momentum_buffer


@optimizer(state={"eta": number("lr"), "mu": number(1.0), "ax": None}, check=refuse_of_asgd, checks_all=True)
def ASGD(param: Tensor, grad: Tensor, eta: Tensor, mu: Tensor, ax: Tensor, step: float, *, lr: float = 1e-2,
         lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0.0) -> Any:  # fmt: skip
    """Averaged stochastic gradient descent, as torch.optim.ASGD; the average is the state "ax"."""
    if weight_decay != 0:
        grad = grad + weight_decay * param
    param = param * (1 - lambd * eta.double()) - eta * grad
    ax = torch.where(mu == 1, param, ax + (param - ax) * mu)
    eta = torch.full((), lr / (1 + lambd * lr * step) ** alpha).to(eta.dtype)  # torch.optim rounds to the default dtype
    mu = torch.full((), 1 / max(1, step - t0)).to(mu.dtype)
    return param, eta, mu, ax


@optimizer(state={"prev": None, "step_size": filled_with("lr")}, check=refuse_of_rprop)
def Rprop(param: Tensor, grad: Tensor, prev: Tensor, step_size: Tensor, step: float, *, lr: float = 1e-2,
          etas: tuple[float, float] = (0.5, 1.2), step_sizes: tuple[float, float] = (1e-6, 50.0)) -> Any:  # fmt: skip
    """Resilient backpropagation, as torch.optim.Rprop."""
    turned, (slower, faster) = grad * prev, etas
    scaled = torch.where(turned < 0, step_size * slower, step_size)
    scaled = torch.where(turned > 0, step_size * faster, scaled)
    step_size = scaled.clamp(*step_sizes)
    grad = torch.where(turned < 0, torch.zeros_like(grad), grad)
    return param - grad.sign() * step_size, grad, step_size


@optimizer(state=("exp_avg",))
def Lion(param: Tensor, grad: Tensor, exp_avg: Tensor, step: float, *, lr: float = 1e-4,
         betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0) -> Any:  # fmt: skip
    """Lion, algorithm 2 of Chen et al., Symbolic Discovery of Optimization Algorithms, 2023 (arXiv:2302.06675)."""
    beta1, beta2 = betas
    update = (beta1 * exp_avg + (1 - beta1) * grad).sign()
    exp_avg = beta2 * exp_avg + (1 - beta2) * grad
    return param * (1 - lr * weight_decay) - lr * update, exp_avg

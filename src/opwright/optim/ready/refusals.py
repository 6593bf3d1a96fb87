"""What the ready optimizers refuse of hyper-parameters: what torch.optim does, in its words."""

from __future__ import annotations

from typing import Any

import torch

from opwright.optim.hyper import refuse_below


def _refuse_negative_rate(lr: Any, words: str) -> None:
    if isinstance(lr, torch.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    refuse_below(0.0, lr, words)


def refuse_of_sgd(*, lr: Any, momentum: Any, dampening: Any, weight_decay: Any, nesterov: bool) -> None:
    """Refuse what torch.optim.SGD does; numbers that are NaN are not refused."""
    if isinstance(lr, torch.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if lr < 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")
    if momentum < 0.0:
        raise ValueError(f"Invalid momentum value: {momentum}")
    if weight_decay < 0.0:
        raise ValueError(f"Invalid weight_decay value: {weight_decay}")
    if nesterov and (momentum <= 0 or dampening != 0):
        raise ValueError("Nesterov momentum requires a momentum and zero dampening")


def refuse_of_asgd(*, lr: Any, lambd: Any, alpha: Any, weight_decay: Any, **_: Any) -> None:
    """Refuse what torch.optim.ASGD does: nothing of `t0`, and before PyTorch 2.15 nothing of `lambd` and `alpha`."""
    _refuse_negative_rate(lr, "Invalid learning rate")
    if torch.__version__ >= "2.15":
        refuse_below(0.0, lambd, "Invalid lambd value")
        refuse_below(0.0, alpha, "Invalid alpha value")
    refuse_below(0.0, weight_decay, "Invalid weight_decay value")


def refuse_of_adam(*, betas: Any, **_: Any) -> None:
    """Refuse what torch.optim.Adam does, beside negative rates."""
    kinds = (float, torch.Tensor)
    if not any(isinstance(betas[0], kind) and isinstance(betas[1], kind) for kind in kinds):
        raise ValueError("betas must be either both floats or both Tensors")
    for position in (0, 1):
        if isinstance(betas[position], torch.Tensor) and betas[position].numel() != 1:
            raise ValueError(f"Tensor betas[{position}] must be 1-element")


def refuse_of_adadelta(*, rho: Any, **_: Any) -> None:
    """Refuse what torch.optim.Adadelta does, beside negative rates."""
    if not 0.0 <= rho <= 1.0:
        raise ValueError(f"Invalid rho value: {rho}")


def refuse_of_rprop(*, etas: Any, **_: Any) -> None:
    """Refuse what torch.optim.Rprop does, beside negative rates."""
    if not 0.0 < etas[0] < 1.0 < etas[1]:
        raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")


def refuse_of_adafactor(*, lr: Any, beta2_decay: Any, eps: Any, d: Any, weight_decay: Any) -> None:
    """Refuse what torch.optim.Adafactor does."""
    _refuse_negative_rate(lr, "Learning rate should be >= 0 but is")
    if beta2_decay > 0.0 or beta2_decay != beta2_decay:
        raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
    if eps[0] is not None:
        refuse_below(0.0, eps[0], "epsilon1 should be >= 0 but is")
    refuse_below(0.0, eps[1], "epsilon2 should be >= 0 but is")
    refuse_below(1.0, d, "Clipping threshold d should be >= 1 but is")
    refuse_below(0.0, weight_decay, "weight_decay should be >= 0 but is")


def refuse_of_muon(*, lr: Any, weight_decay: Any, momentum: Any, ns_coefficients: Any, ns_steps: Any,
                   adjust_lr_fn: Any, **_: Any) -> None:  # fmt: skip
    """Refuse what torch.optim.Muon does, when it is made and in its steps."""
    _refuse_negative_rate(lr, "Learning rate should be >= 0 but is")
    refuse_below(0.0, momentum, "momentum should be >= 0 but is")
    refuse_below(0.0, weight_decay, "weight decay should be >= 0 but is")
    if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
        raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")

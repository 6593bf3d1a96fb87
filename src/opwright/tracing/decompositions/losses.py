"""Losses whose arguments torch checks value by value: the kernels check all of them, too.

Those that choose one class of each row are a row reduction with a mask instead of a gather, so they fuse with the
softmax before them. The same check is for one_hot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.tracing.torch_hooks.fake_mode import core_decompositions

aten = torch.ops.aten
Tensor = torch.Tensor
_NONE, _MEAN = 0, 1  # torch's numbers for the reduction of losses; 2 is the sum


def _chosen(x: Tensor, target: Tensor, ignored: int) -> Tensor:
    """A mask of the chosen class in each row of a matrix; no element of an ignored row."""
    classes = torch.arange(x.shape[1])
    return (classes == target.unsqueeze(1)) & (target != ignored).unsqueeze(1)


def _nll_loss_forward(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignored: int
) -> tuple[Tensor, Tensor]:
    """The negative log likelihood of the chosen classes, and the sum of their weights."""
    rows, classes = (x, target) if x.dim() == 2 else (x.unsqueeze(0), target.unsqueeze(0))
    in_range = (classes >= 0) & (classes < rows.shape[1])
    aten._assert_async.msg(torch.all(in_range | (classes == ignored)), "a target is out of bounds")
    chosen = _chosen(rows, classes, ignored)
    weighted = rows if weight is None else rows * weight
    losses = -torch.sum(torch.where(chosen, weighted, 0.0), [1])
    if reduction == _NONE:
        return (losses if x.dim() == 2 else losses.squeeze(0)), x.new_zeros(())
    if weight is None:
        total = torch.sum((classes != ignored).to(x.dtype))
    else:
        total = torch.sum(torch.where(chosen, weight, 0.0))
    loss = torch.sum(losses)
    return (loss / total if reduction == _MEAN else loss), total


def _nll_loss_backward(
    gradient: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignored: int,
    total: Tensor,
) -> Tensor:
    rows, classes = (x, target) if x.dim() == 2 else (x.unsqueeze(0), target.unsqueeze(0))
    share = gradient / total if reduction == _MEAN else gradient
    if share.dim() == 1:
        share = share.unsqueeze(1)
    weighted = -share if weight is None else -share * weight
    found = torch.where(_chosen(rows, classes, ignored), weighted, 0.0)
    return found if x.dim() == 2 else found.squeeze(0)


def _binary_cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = _MEAN) -> Tensor:
    for given in (x, target):
        aten._assert_async.msg(torch.all((given >= 0) & (given <= 1)), "a probability is out of bounds")
    loss: Tensor = core_decompositions()[aten.binary_cross_entropy.default](x, target, weight, reduction)
    return loss


def _smooth_l1_loss_backward(gradient: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    """In torch's decomposition the gradient of NaN is zero, the sign of NaN; in its kernel it is NaN."""
    share = gradient / x.numel() if reduction == _MEAN else gradient
    difference = x - target
    inside = torch.where(difference >= beta, share, share * difference / beta)
    return torch.where(difference <= -beta, -share, inside)


def _multi_margin_loss(
    x: Tensor, target: Tensor, p: int = 1, margin: float = 1, weight: Tensor | None = None, reduction: int = _MEAN
) -> Tensor:
    """Σ max(0, margin - x[target] + x)^p / classes over the other classes; in torch's kernel NaN adds nothing to it."""
    rows, classes = x.reshape(-1, x.shape[-1]), target.reshape(-1, 1)
    aten._assert_async.msg(torch.all((classes >= 0) & (classes < rows.shape[1])), "a target is out of bounds")
    excess, above = _excess(rows, classes, margin)
    powers = _weighted(excess * excess if p == 2 else excess, rows, classes, weight)
    losses = torch.sum(torch.where(above, powers, 0.0), [1]) / rows.shape[1]
    if reduction == _NONE:
        return losses.reshape(target.shape)
    loss = torch.sum(losses)
    return loss / rows.shape[0] if reduction == _MEAN else loss


def _multi_margin_loss_backward(
    gradient: Tensor,
    x: Tensor,
    target: Tensor,
    p: int,
    margin: float,
    weight: Tensor | None = None,
    reduction: int = _MEAN,
) -> Tensor:
    rows, classes = x.reshape(-1, x.shape[-1]), target.reshape(-1, 1)
    excess, above = _excess(rows, classes, margin)
    slopes = _weighted(2 * excess if p == 2 else torch.ones_like(excess), rows, classes, weight)
    slope = torch.where(above, slopes, 0.0) / rows.shape[1]
    cotangents = gradient.reshape(-1, 1) if reduction == _NONE else gradient
    slope = slope * (cotangents / rows.shape[0] if reduction == _MEAN else cotangents)
    chosen = torch.arange(rows.shape[1]) == classes
    return torch.where(chosen, -torch.sum(slope, [1], True), slope).reshape(x.shape)


def _excess(rows: Tensor, classes: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """How far each class is above what the margin allows, and whether it is a class that counts so."""
    chosen = torch.arange(rows.shape[1]) == classes
    excess = margin - torch.sum(torch.where(chosen, rows, 0.0), [1], True) + rows
    return excess, (excess > 0) & ~chosen


def _weighted(x: Tensor, rows: Tensor, classes: Tensor, weight: Tensor | None) -> Tensor:
    """Times the weight of each row's chosen class."""
    if weight is None:
        return x
    chosen = torch.arange(rows.shape[1]) == classes
    return x * torch.sum(torch.where(chosen, weight, 0.0), [1], True)


LOSSES: Mapping[OpOverload, Callable[..., Any]] = {
    aten.nll_loss_forward.default: _nll_loss_forward,
    aten.nll_loss_backward.default: _nll_loss_backward,
    aten.binary_cross_entropy.default: _binary_cross_entropy,
    aten.multi_margin_loss.default: _multi_margin_loss,
    aten.multi_margin_loss_backward.default: _multi_margin_loss_backward,
    aten.smooth_l1_loss_backward.default: _smooth_l1_loss_backward,
}

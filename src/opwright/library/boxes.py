"""Losses of boxes, which are two corners along the last axis: left, top, right, bottom."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import boxes, drawn

_PAIRS = {"N": (1024, 32768, 1048576)}


@operator(name="opwright_library::iou_loss", samples=drawn(boxes("N 4"), boxes("N 4"), **_PAIRS))
def iou_loss(predicted: Tensor, target: Tensor, eps: float = 1e-7) -> Tensor:
    """Compare boxes by the part of their union that they share.

        L = 1 - I / (U + ε), I the area of the intersection, U of the union

    Args:
        predicted: (..., 4), floating.
        target: As predicted.
        eps: ε.

    Returns:
        (...), of the dtype of the arguments, from 0 to 1.

    Raises:
        RuntimeError: The shapes do not broadcast.
        ValueError: The last axis is not of size 4.

    Source:
        Yu et al., UnitBox, 2016, arXiv:1608.01471, as 1 - IoU.
    """
    left, top, right, bottom = predicted.unbind(-1)
    other_left, other_top, other_right, other_bottom = target.unbind(-1)
    width = (torch.minimum(right, other_right) - torch.maximum(left, other_left)).clamp(min=0.0)
    height = (torch.minimum(bottom, other_bottom) - torch.maximum(top, other_top)).clamp(min=0.0)
    shared = width * height
    areas = (right - left) * (bottom - top) + (other_right - other_left) * (other_bottom - other_top)
    return 1.0 - shared / (areas - shared + eps)


@operator(name="opwright_library::generalized_iou_loss", samples=drawn(boxes("N 4"), boxes("N 4"), **_PAIRS))
def generalized_iou_loss(predicted: Tensor, target: Tensor, eps: float = 1e-7) -> Tensor:
    """Compare boxes by their overlap, and by what else the smallest box around both has (GIoU).

        L = 1 - I / (U + ε) + (C - U) / (C + ε), C the area of the smallest box around both

    Args:
        predicted: (..., 4), floating.
        target: As predicted.
        eps: ε.

    Returns:
        (...), of the dtype of the arguments, from 0 to 2.

    Raises:
        RuntimeError: The shapes do not broadcast.
        ValueError: The last axis is not of size 4.

    Source:
        Rezatofighi et al., Generalized Intersection over Union, 2019, arXiv:1902.09630, algorithm 1.
    """
    left, top, right, bottom = predicted.unbind(-1)
    other_left, other_top, other_right, other_bottom = target.unbind(-1)
    width = (torch.minimum(right, other_right) - torch.maximum(left, other_left)).clamp(min=0.0)
    height = (torch.minimum(bottom, other_bottom) - torch.maximum(top, other_top)).clamp(min=0.0)
    shared = width * height
    areas = (right - left) * (bottom - top) + (other_right - other_left) * (other_bottom - other_top)
    union = areas - shared
    around = (torch.maximum(right, other_right) - torch.minimum(left, other_left)) * (
        torch.maximum(bottom, other_bottom) - torch.minimum(top, other_top)
    )
    return 1.0 - shared / (union + eps) + (around - union) / (around + eps)


@operator(name="opwright_library::complete_iou_loss", samples=drawn(boxes("N 4"), boxes("N 4"), **_PAIRS))
def complete_iou_loss(predicted: Tensor, target: Tensor, eps: float = 1e-7) -> Tensor:
    """Compare boxes by their overlap, the distance of their centres, and their proportions (CIoU).

        L = 1 - o + d² / (c² + ε) + a v, o = I / (U + ε), v = 4/π² · (atan(w'/h') - atan(w/h))², a = v / (1 - o + v + ε)

    d is the distance of the centres, c the diagonal of the smallest box around both. As in the paper, a is a constant
    for the gradient.

    Args:
        predicted: (..., 4), floating, with heights above zero.
        target: As predicted.
        eps: ε.

    Returns:
        (...), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.
        ValueError: The last axis is not of size 4.

    Source:
        Zheng et al., Distance-IoU Loss, 2019, arXiv:1911.08287, equations 8 to 11.
    """
    left, top, right, bottom = predicted.unbind(-1)
    other_left, other_top, other_right, other_bottom = target.unbind(-1)
    width = (torch.minimum(right, other_right) - torch.maximum(left, other_left)).clamp(min=0.0)
    height = (torch.minimum(bottom, other_bottom) - torch.maximum(top, other_top)).clamp(min=0.0)
    shared = width * height
    areas = (right - left) * (bottom - top) + (other_right - other_left) * (other_bottom - other_top)
    overlap = shared / (areas - shared + eps)
    across = torch.maximum(right, other_right) - torch.minimum(left, other_left)
    down = torch.maximum(bottom, other_bottom) - torch.minimum(top, other_top)
    apart = (left + right - other_left - other_right).square() + (top + bottom - other_top - other_bottom).square()
    proportions = torch.atan((other_right - other_left) / (other_bottom - other_top)) - torch.atan(
        (right - left) / (bottom - top)
    )
    unlike = 4.0 / math.pi**2 * proportions.square()
    weight = (unlike / (1.0 - overlap + unlike + eps)).detach()
    return 1.0 - overlap + apart / 4.0 / (across.square() + down.square() + eps) + weight * unlike

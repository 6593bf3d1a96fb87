"""Losses of boxes, which are two corners along the last axis: left, top, right, bottom."""

from __future__ import annotations

import torch
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import boxes, drawn

_PAIRS = {"N": (1024, 32768, 1048576)}


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

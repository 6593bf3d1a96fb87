"""Losses of classes and of numbers, with what is done around them: smoothing, masks, temperatures."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import drawn

_ROWS = {"N": (64, 512, 2048), "C": (256, 1024, 4096)}


@operator(name="opwright_library::distillation_loss", samples=drawn("N C", "N C", **_ROWS))
def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 2.0) -> Tensor:
    """Compare two models' logits, softened.

        L = T² · mean over rows of Σ q · (log q - log p), q = softmax(teacher / T), p = softmax(student / T)

    Args:
        student: (N, C), floating.
        teacher: As the student.
        temperature: T, above zero.

    Returns:
        (), of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Hinton et al., Distilling the Knowledge in a Neural Network, 2015, arXiv:1503.02531, section 2.
    """
    p = F.log_softmax(student / temperature, -1)
    q = F.log_softmax(teacher / temperature, -1)
    return (q.exp() * (q - p)).sum(-1).mean() * temperature**2

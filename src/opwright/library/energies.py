"""Energies of pairs of particles by their distances, and kernels of distances."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import drawn, positive

_DISTANCES = {"N": (64, 512, 2048), "C": (256, 1024, 4096)}
_POINTS = {"N": (1024, 32768, 1048576)}


@operator(name="opwright_library::matern_kernel", samples=drawn(positive("N C"), **_DISTANCES))
def matern_kernel(distance: Tensor, length: float = 1.0) -> Tensor:
    """The covariance of a Gaussian process that is differentiable twice (Matérn, ν = 5/2).

        y = (1 + z + z²/3) · exp(-z), z = √5 r / l

    Args:
        distance: r, any shape, floating, at least 0.
        length: l, in the unit of r, above zero.

    Returns:
        As the distance, from 0 to 1.

    Raises:
        TypeError: The distance is no tensor.

    Source:
        Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, equation 4.17.
    """
    z = distance * (math.sqrt(5.0) / length)
    return torch.exp(-z) * (1.0 + z + z.square() / 3.0)

"""Energies of pairs of particles by their distances, and kernels of distances."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from opwright.api.decorator import operator
from opwright.library.samples import drawn, positive

_DISTANCES = {"N": (64, 512, 2048), "C": (256, 1024, 4096)}
_POINTS = {"N": (1024, 32768, 1048576)}


@operator(name="opwright_library::lennard_jones", samples=drawn(positive("N C"), **_DISTANCES))
def lennard_jones(distance: Tensor, depth: float = 1.0, size: float = 1.0) -> Tensor:
    """The energy of two atoms without charge.

        E = 4 e · ((s/r)¹² - (s/r)⁶)

    Args:
        distance: r, any shape, floating, not zero.
        depth: e, in the unit of energy.
        size: s, the distance where the energy is zero, in the unit of r.

    Returns:
        As the distance, in the unit of the depth.

    Raises:
        TypeError: The distance is no tensor.

    Source:
        Lennard-Jones, On the Determination of Molecular Fields, 1924.
    """
    sixth = (size / distance).square().pow(3)
    return 4.0 * depth * (sixth.square() - sixth)


@operator(name="opwright_library::morse", samples=drawn(positive("N C"), **_DISTANCES))
def morse(distance: Tensor, depth: float = 1.0, width: float = 1.5, rest: float = 1.0) -> Tensor:
    """The energy of a bond that breaks.

        E = D · (1 - exp(-a (r - r₀)))²

    Args:
        distance: r, any shape, floating.
        depth: D, in the unit of energy.
        width: a, in the unit of 1 / r.
        rest: r₀, where the energy is zero, in the unit of r.

    Returns:
        As the distance, in the unit of the depth.

    Raises:
        TypeError: The distance is no tensor.

    Source:
        Morse, Diatomic Molecules According to the Wave Mechanics, 1929, equation 4, from the bottom of the well.
    """
    return depth * (1.0 - torch.exp(-width * (distance - rest))).square()


@operator(name="opwright_library::buckingham", samples=drawn(positive("N C"), **_DISTANCES))
def buckingham(distance: Tensor, height: float = 1000.0, steepness: float = 4.0, attraction: float = 1.0) -> Tensor:
    """The energy of two ions without their charges.

        E = A · exp(-B r) - C / r⁶

    Args:
        distance: r, any shape, floating, not zero.
        height: A, in the unit of energy.
        steepness: B, in the unit of 1 / r.
        attraction: C, in the unit of energy · r⁶.

    Returns:
        As the distance.

    Raises:
        TypeError: The distance is no tensor.

    Source:
        Buckingham, The Classical Equation of State of Gaseous Helium, Neon and Argon, 1938.
    """
    return height * torch.exp(-steepness * distance) - attraction / distance.square().pow(3)


@operator(name="opwright_library::screened_coulomb", samples=drawn(positive("N C"), "N C", **_DISTANCES))
def screened_coulomb(distance: Tensor, charges: Tensor, screening: float = 0.5) -> Tensor:
    """The energy of two charges among others (Debye and Hückel, Yukawa).

        E = q · exp(-k r) / r

    Args:
        distance: r, any shape, floating, not zero.
        charges: q, the product of both charges, as the distance.
        screening: k, in the unit of 1 / r.

    Returns:
        Any shape, of the dtype of the arguments.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Source:
        Yukawa, On the Interaction of Elementary Particles, 1935, equation 2.
    """
    return charges * torch.exp(-screening * distance) / distance


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

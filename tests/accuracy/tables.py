"""All subjects, by family, and what is known to be outside of the promise."""

from __future__ import annotations

from collections.abc import Mapping

from tests.accuracy.activations import ACTIVATIONS
from tests.accuracy.losses import DENSITIES, LOSSES
from tests.accuracy.rows import DISTANCES, NORMS, REDUCTIONS, SOFTMAXES
from tests.accuracy.subject import Subject

FAMILIES: Mapping[str, Mapping[str, Subject]] = {
    "activations": ACTIVATIONS,
    "softmaxes": SOFTMAXES,
    "norms": NORMS,
    "reductions": REDUCTIONS,
    "distances and complex numbers": DISTANCES,
    "losses": LOSSES,
    "densities": DENSITIES,
}

EXCEPTIONS: Mapping[str, str] = {
    "attention of a row": "softmax multiplies a row by one rounded reciprocal of its sum, whose error does not average"
    " out where values of a row hardly differ; eager divides each element",
    "instance_norm": "eager computes batch norms of float32 in double precision, the mean included",
}
"""Functions with a result outside of the promise in some range, and the cause."""
EXCEPTIONAL_FACTOR = 3.0
"""How much further than the promise these may be."""

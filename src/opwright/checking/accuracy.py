"""Accuracy: compare a result with the reference in the same dtype (eager) and in float64 (exact)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from opwright.checking.finding import Fault
from opwright.checking.tolerance import reduction_length, tolerance

_FEW_ELEMENTS = 8
_WIDEST = (torch.float64, torch.complex128)
_CANCELLATION = 64.0  # with few elements, cancellation in one of them is the whole error


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Largest errors against the exact result, relative to its largest value."""

    error: float = 0.0
    eager_error: float = 0.0

    def worst(self, other: Accuracy) -> Accuracy:
        """Return the larger of each."""
        return Accuracy(max(self.error, other.error), max(self.eager_error, other.eager_error))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Three results of one computation, and the inputs it had.

    Attributes:
        what: What the tensors are, such as "output" or "gradient of input".
        actual: What the candidate returned.
        eager: What the reference returned in the same dtype.
        exact: What the reference returned in float64.
        inputs: Everything that was computed from; says how long sums can be.
    """

    what: str
    actual: Sequence[torch.Tensor]
    eager: Sequence[torch.Tensor]
    exact: Sequence[torch.Tensor]
    inputs: list[torch.Tensor]

    def judge(self) -> Accuracy:
        """Measure the errors.

        Raises:
            Fault: A count, shape, dtype or device differs from eager's; NaN or Inf is elsewhere; or the error is above
                twice eager's own and the tolerance.
        """
        if len(self.actual) != len(self.eager):
            raise Fault(f"{len(self.actual)} tensors where the reference has {len(self.eager)} ({self.what})")
        accuracy = Accuracy()
        for index, triple in enumerate(zip(self.actual, self.eager, self.exact, strict=True)):
            accuracy = accuracy.worst(_judge(f"{self.what} {index}", *triple, self.inputs))
        return accuracy


def equal_kind(what: str, actual: torch.Tensor, eager: torch.Tensor) -> None:
    """Demand the shape, dtype and device of eager's tensor.

    Raises:
        Fault: One of them differs.
    """
    for trait in ("shape", "dtype", "device"):
        mine, expected = getattr(actual, trait), getattr(eager, trait)
        if mine != expected:
            raise Fault(f"{what} has {trait} {_shown(mine)}, the reference's has {_shown(expected)}")


def _judge(
    what: str, actual: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, inputs: list[torch.Tensor]
) -> Accuracy:
    equal_kind(what, actual, eager)
    if not (eager.is_floating_point() or eager.is_complex()):
        return _judge_discrete(what, actual, eager)
    actual, eager, exact = _real(actual), _real(eager), _real(exact)
    rounded = exact.to(eager.dtype)
    _same_specials(what, actual, eager, rounded)
    scale = _scale(exact, rounded)
    measured = actual.isfinite() & rounded.isfinite()
    error = _largest(actual, exact, measured) / scale
    eager_error = _largest(eager, exact, measured & eager.isfinite()) / scale
    slack, length = _CANCELLATION if eager.numel() < _FEW_ELEMENTS else 1.0, reduction_length(inputs, eager)
    if eager.dtype in _WIDEST:  # what one rounding of the inputs does; a sum rounds at each of its terms
        eager_error *= length**0.5
    allowed = 2 * eager_error + slack * tolerance(eager.dtype, length)
    if error > allowed:
        raise Fault(f"{what} is wrong: error {error:.2g}, allowed {allowed:.2g}", error, eager_error)
    return Accuracy(error, eager_error)


def _judge_discrete(what: str, actual: torch.Tensor, eager: torch.Tensor) -> Accuracy:
    differing = (actual != eager).nonzero()
    if len(differing):
        raise Fault(f"{what} differs at {differing[0].tolist()} and {len(differing) - 1} other places")
    return Accuracy()


def _same_specials(what: str, actual: torch.Tensor, eager: torch.Tensor, rounded: torch.Tensor) -> None:
    """Demand NaN and ±Inf where eager has them, or where float64 has them: a fused sum overflows less than eager's."""
    mine = _special_kind(actual)
    wrong = ((mine != _special_kind(eager)) & (mine != _special_kind(rounded))).nonzero()
    if not len(wrong):
        return
    place = tuple(wrong[0].tolist())
    raise Fault(f"{what} is {actual[place].item()} at {list(place)}, where the reference has {eager[place].item()}")


def _special_kind(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.isnan() * 1 + tensor.isposinf() * 2 + tensor.isneginf() * 3


def _scale(exact: torch.Tensor, rounded: torch.Tensor) -> float:
    largest = exact[rounded.isfinite()].abs().max().item() if rounded.isfinite().any() else 0.0
    return max(largest, torch.finfo(rounded.dtype).tiny) if largest > 0 else 1.0


def _largest(tensor: torch.Tensor, exact: torch.Tensor, where: torch.Tensor) -> float:
    difference = (tensor.to(exact.dtype) - exact)[where].abs()
    return difference.max().item() if difference.numel() else 0.0


def _real(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(plain) if plain.is_complex() else plain


def _shown(value: object) -> str:
    return str(tuple(value)) if isinstance(value, torch.Size) else str(value).removeprefix("torch.")

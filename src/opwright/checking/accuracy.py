"""Accuracy: compare a result with the reference in the same dtype (eager) and in float64 (exact)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from math import isfinite

import torch

from opwright.checking.finding import Fault
from opwright.checking.tolerance import reduction_length, tolerance

_FEW_ELEMENTS = 8
_PIECE = 1 << 15  # elements that are compared at a time: few enough for the cache, and for torch to start no threads
_WIDEST = (torch.float64, torch.complex128)
_CANCELLATION = 64.0  # with few elements, cancellation in one of them dominates the error


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
        what: The name of the tensors in messages, such as "output" or "gradient of input".
        actual: What the candidate returned.
        eager: What the reference returned in the same dtype.
        exact: What the reference returned in float64.
        inputs: The inputs of the computation, whose sizes bound the length of sums.
        rounded: Runs the reference in float64 a few times, with random rounding errors of a dtype
            (`opwright.checking.roundings`). It is asked only about results that would be wrong otherwise: they may be
            what rounding leaves of larger numbers that cancel, as in a divergence of a tensor from itself.
    """

    what: str
    actual: Sequence[torch.Tensor]
    eager: Sequence[torch.Tensor]
    exact: Sequence[torch.Tensor]
    inputs: list[torch.Tensor]
    rounded: Callable[[torch.dtype], Sequence[Sequence[torch.Tensor]]] | None = None

    def judge(self) -> Accuracy:
        """Measure the errors.

        Raises:
            Fault: A count, shape, dtype or device differs from eager's; NaN or Inf is in another place; or the error
                exceeds the tolerance, twice eager's own, and twice what random roundings of the reference do.
        """
        if len(self.actual) != len(self.eager):
            raise Fault(f"{len(self.actual)} tensors where the reference has {len(self.eager)} ({self.what})")
        accuracy = Accuracy()
        for index, triple in enumerate(zip(self.actual, self.eager, self.exact, strict=True)):
            try:
                found = _judge(f"{self.what} {index}", *triple, self.inputs)
            except Fault as fault:
                if fault.finding.error is None or self.rounded is None:  # no error can be measured, or none explained
                    raise
                explained = [made[index] for made in self.rounded(triple[1].dtype) if len(made) == len(self.exact)]
                found = _judge(f"{self.what} {index}", *triple, self.inputs, explained)
            accuracy = accuracy.worst(found)
        return accuracy


def equal_kind(what: str, actual: torch.Tensor, eager: torch.Tensor) -> None:
    """Demand the shape, dtype and device of eager's tensor.

    Raises:
        Fault: One of them differs.
    """
    for trait in ("shape", "dtype", "device"):
        mine, expected = getattr(actual, trait), getattr(eager, trait)
        if mine != expected:
            raise Fault(f"{what} has {trait} {shown(mine)}, the reference's has {shown(expected)}")


def _judge(
    what: str,
    actual: torch.Tensor,
    eager: torch.Tensor,
    exact: torch.Tensor,
    inputs: list[torch.Tensor],
    rounded: Sequence[torch.Tensor] = (),
) -> Accuracy:
    equal_kind(what, actual, eager)
    if not (eager.is_floating_point() or eager.is_complex()):
        return _judge_discrete(what, actual, eager)
    triple = as_real(actual), as_real(eager), as_real(exact)
    triple = _without_overflows(*triple), *triple[1:]
    pieces = zip(*(tensor.reshape(-1).split(_PIECE) for tensor in triple), strict=True)
    try:
        largest, error, eager_error = map(max, zip(*starmap(_measure, pieces), strict=True))
    except _SpecialsDiffer:
        raise _special_fault(what, *triple) from None
    scale = max(largest, torch.finfo(eager.dtype).tiny) if largest > 0 else 1.0
    error, eager_error = error / scale, eager_error / scale
    slack, length = _CANCELLATION if eager.numel() < _FEW_ELEMENTS else 1.0, reduction_length(inputs, eager)
    if eager.dtype in _WIDEST:  # what one rounding of the inputs does; a sum rounds at each of its terms
        eager_error *= length**0.5
    by_rounding = max((_distance(as_real(each), triple[2]) for each in rounded), default=0.0) / scale
    allowed = 2 * max(eager_error, by_rounding) + slack * tolerance(eager.dtype, length)
    if error > allowed:
        said = f"{what} is wrong: error {error:.2g}, allowed {allowed:.2g}; {_largest_difference(*triple)}"
        raise Fault(said, error, eager_error)
    return Accuracy(error, eager_error)


def _distance(first: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest difference of numbers that are finite; zero if the shapes differ."""
    if first.shape != exact.shape:
        return 0.0
    difference = first - exact
    return _largest(difference[difference.isfinite()])


def _largest_difference(actual: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> str:
    """The three values where the error is largest, and where that is."""
    errors = (actual.to(exact.dtype) - exact).abs().nan_to_num(nan=0.0, posinf=0.0)
    place = torch.unravel_index(errors.argmax(), errors.shape)
    at = f" at {[index.item() for index in place]}" if place else ""
    found, theirs, true = (tensor[place].item() for tensor in (actual, eager, exact))
    return f"it is {found:.6g}{at}, exactly {true:.6g}, eager {theirs:.6g}"


def _judge_discrete(what: str, actual: torch.Tensor, eager: torch.Tensor) -> Accuracy:
    differing = (actual != eager).nonzero()
    if len(differing):
        raise Fault(f"{what} differs at {differing[0].tolist()} and {len(differing) - 1} other places")
    return Accuracy()


class _SpecialsDiffer(Exception):
    """NaN or Inf is not where the other results have it."""


def _measure(actual: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> tuple[float, float, float]:
    """Find the largest exact value, and the largest errors of the finite results.

    Raises:
        _SpecialsDiffer: NaN or ±Inf is where neither eager's result nor the exact one has it: a fused sum may overflow
            less than eager's.
    """
    rounded = exact.to(eager.dtype)
    if all(map(_is_finite, (actual, eager, rounded))):
        return _largest(exact), _largest(actual.to(exact.dtype) - exact), _largest(eager.to(exact.dtype) - exact)
    if _specials_differ(actual, eager, rounded).any():
        raise _SpecialsDiffer
    numbers = rounded.isfinite()
    both = numbers & actual.isfinite()
    error = (actual.to(exact.dtype) - exact)[both]
    eager_error = (eager.to(exact.dtype) - exact)[both & eager.isfinite()]
    return _largest(exact[numbers]), _largest(error), _largest(eager_error)


def _special_fault(what: str, actual: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> Fault:
    place = tuple(_specials_differ(actual, eager, exact.to(eager.dtype)).nonzero()[0].tolist())
    found, expected = actual[place].item(), eager[place].item()
    return Fault(f"{what} is {found} at {list(place)}, where the reference has {expected}")


def _specials_differ(actual: torch.Tensor, eager: torch.Tensor, rounded: torch.Tensor) -> torch.Tensor:
    """Where a result is special in a way that neither eager's nor the exact one is.

    One difference tells as much as eager does: ±∞ where both have NaN, since ∞ - ∞ depends on the order of sums.
    """
    mine, theirs, true = _special_kind(actual), _special_kind(eager), _special_kind(rounded)
    differ = (mine != theirs) & (mine != true)
    undefined = (mine > 1) & (theirs == 1) & (true == 1)
    return differ & ~undefined


def _without_overflows(actual: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Replace NaN by eager's numbers where these come from an overflow within eager, so that they say nothing.

    A norm of a row whose variance overflows gives NaN or its bias, depending on where the large element stands and on
    the width of vectors. Rounding does not explain an element that is wrong by half. If all that lie along an axis
    with it are NaN, as the elements of such a row are, they are taken to come from the same sum.
    """
    missing = actual.isnan() & ~eager.isnan()
    if not missing.any():
        return actual
    rounded = exact.to(eager.dtype)
    lost = ((eager - rounded).abs() >= rounded.abs() / 2) & (rounded != 0) & rounded.isfinite()
    void = actual.isnan()
    lines = [lost.any(axis, keepdim=True) & void.all(axis, keepdim=True) for axis in range(lost.dim())]
    return torch.where(missing & functools.reduce(torch.logical_or, lines, lost), eager, actual)


def _special_kind(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.isnan() * 1 + tensor.isposinf() * 2 + tensor.isneginf() * 3


def _is_finite(tensor: torch.Tensor) -> bool:
    return isfinite(_largest(tensor))


def _largest(tensor: torch.Tensor) -> float:
    """The largest magnitude; NaN if there is a NaN, and zero if there is nothing."""
    if not tensor.numel():
        return 0.0
    least, most = torch.aminmax(tensor)  # ten times as fast as the norm
    return max(-least.item(), most.item())


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers, those of a complex tensor as pairs."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(plain) if plain.is_complex() else plain


def shown(value: object) -> str:
    """A shape or a dtype, in short."""
    return str(tuple(value)) if isinstance(value, torch.Size) else str(value).removeprefix("torch.")

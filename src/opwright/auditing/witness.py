"""Witness: differences between the observations of subject and reference, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from opwright.checking.accuracy import as_real, equal_kind
from opwright.checking.calls import widened
from opwright.checking.finding import Fault
from opwright.checking.tolerance import reduction_length, tolerance

Seen = Mapping[str, Any]
"""The observations of an experiment: tensors, and values to compare with ==, in nested containers, by name."""

# How many times the rounding error of one call two right results may differ, by the bytes of a number: derivatives of
# derivatives round often. An audit looks for wrong results, not for imprecise ones, and those differ by far more.
_SLACK = {8: 1000.0, 4: 8.0, 2: 2.0, 1: 1.0}


def demand_same(got: Seen, expected: Seen, exact: Seen | None, inputs: list[torch.Tensor]) -> None:
    """Demand that the subject's observations equal the reference's.

    Args:
        got: The observations of the subject.
        expected: The observations of the reference.
        exact: The reference's in float64, with inputs moved by one rounding where they are in float64 already: its
            distance from `expected` is how far apart two right results may be. None to allow rounding of the results
            only.
        inputs: The inputs of the computation, whose sizes bound the length of sums.

    Raises:
        Fault: They differ; the message has the place, what was got and what was expected.
    """
    truth = dict(_leaves(exact)) if exact is not None else {}
    mine, theirs = dict(_leaves(got)), dict(_leaves(expected))
    if mine.keys() != theirs.keys():
        raise Fault(f"got {_listed(mine.keys() - theirs.keys())}, expected {_listed(theirs.keys() - mine.keys())}")
    for what, value in theirs.items():
        if isinstance(value, torch.Tensor) and isinstance(mine[what], torch.Tensor):
            _demand_close(what, mine[what], value, truth.get(what), inputs)
        elif type(mine[what]) is not type(value) or mine[what] != value:
            raise Fault(f"{what}: got {_shown(mine[what])}, expected {_shown(value)}")


def _demand_close(
    what: str, got: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor | None, inputs: list[torch.Tensor]
) -> None:
    equal_kind(what, got, expected)
    mine, theirs = _plain(got), _plain(expected)
    length = reduction_length(inputs, theirs)
    allowed = torch.zeros(theirs.shape, dtype=torch.float64)
    if theirs.is_floating_point():
        finite = theirs[theirs.isfinite()].abs()
        largest = finite.max().item() if finite.numel() else 0.0
        allowed += _SLACK[theirs.dtype.itemsize] * tolerance(theirs.dtype, length) * largest
    if theirs.is_floating_point() and exact is not None and exact.shape == expected.shape:
        rounding = (widened(theirs) - widened(_plain(exact))).abs().nan_to_num()
        allowed += (2 * length**0.5 if exact.dtype == expected.dtype else 3) * rounding.max()
    wide = (widened(mine), widened(theirs)) if theirs.is_floating_point() else (mine, theirs)
    same = (mine == theirs) | (mine.isnan() & theirs.isnan())
    if theirs.is_floating_point():
        same |= (wide[0] - wide[1]).abs() <= allowed
    wrong = (~same).nonzero()
    if len(wrong):
        raise Fault(_sentence(what, mine, theirs, (wide[0].double() - wide[1].double()).abs().where(~same, -1.0)))


def _sentence(what: str, got: torch.Tensor, expected: torch.Tensor, distance: torch.Tensor) -> str:
    worst = distance.nan_to_num(nan=torch.inf).argmax()
    place = [int(index) for index in torch.unravel_index(worst, distance.shape)]
    where = f" at {place}" if place else ""
    return f"{what}{where}: got {got[tuple(place)].item():.6g}, expected {expected[tuple(place)].item():.6g}"


def _leaves(seen: Seen) -> Iterator[tuple[str, Any]]:
    """Name each value: "gradient 0" is the first in the list "gradient"."""
    for path, leaf in pytree.tree_flatten_with_path(dict(seen))[0]:
        yield " ".join(str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path), leaf


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return as_real(tensor).cpu()


def _listed(names: Any) -> str:
    return ", ".join(sorted(names)) or "nothing more"


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')}, {tuple(value.shape)}"
    return str(value).removeprefix("torch.")

"""S22: several overriding types in one call."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import opwright
from opwright.errors import HandlerRefused


class Shape(opwright.tensors.Like):
    """One that passes everything on."""

    def densify(self) -> torch.Tensor:
        return torch.ones(2, 2)


class Square(Shape):
    """Below it."""


class Colour(opwright.tensors.Like, accepts=(Shape,)):
    """Apart from both, of which its handlers take objects."""

    def densify(self) -> torch.Tensor:
        return torch.zeros(2, 2)


ASKED: list[str] = []


@Shape.implements(torch.mul)
def mul_shape(input: Any, other: Any) -> Any:
    ASKED.append("Shape")
    return NotImplemented


@Square.implements(torch.mul)
def mul_square(input: Any, other: Any) -> Any:
    ASKED.append("Square")
    return NotImplemented


@Colour.implements(torch.mul)
def mul_colour(input: Any, other: Any) -> Any:
    ASKED.append("Colour")
    return "a colour" if isinstance(input, Colour) else NotImplemented


@pytest.mark.parametrize(
    ("first", "second", "asked"),
    [
        (Shape, Square, ["Square", "Shape"]),
        (Square, Shape, ["Square", "Shape"]),
        (Shape, Colour, ["Colour"]),  # Shape takes no colours, and passes on without its handler
    ],
)
def test_subclasses_are_asked_before_superclasses_then_left_to_right(
    first: type, second: type, asked: list[str]
) -> None:
    ASKED.clear()
    with pytest.raises((TypeError, HandlerRefused), match="mul"):
        torch.mul(first(), second())
    assert asked == ASKED


def test_not_implemented_passes_on_to_the_next() -> None:
    ASKED.clear()
    assert torch.mul(Colour(), Square()) == "a colour"  # type: ignore[arg-type, comparison-overlap]
    assert ASKED == ["Colour"]


def test_the_report_tells_it_of_real_calls() -> None:
    report = opwright.tensors.precedence(Shape, Square, Colour, functions=[torch.mul])
    assert all(meeting.as_ruled for meeting in report.meetings), repr(report)
    (met,) = [m for m in report.meetings if m.function == "mul" and m.arguments == ("Shape", "Square")]
    assert [asked.type for asked in met.asked] == ["Square", "Shape"]
    assert met.raised

"""The rungs of an operator: which ways there are to run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RungName = Literal["composed", "function", "cpp", "cuda"]
RUNGS: tuple[RungName, ...] = ("composed", "function", "cpp", "cuda")


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to run an operator.

    Attributes:
        name: "composed" (the reference), "function", "cpp" or "cuda".
        available: Whether it can serve calls here.
        origin: Whether it is the reference itself, derived from it, or written by hand.
        reason: Why it is missing; empty if it is available.
        variants: How many variants of it are loaded in this process.
    """

    name: RungName
    available: bool
    origin: Literal["reference", "derived", "written"]
    reason: str = ""
    variants: int = 0

"""The rungs of an operator: the ways to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from opwright.errors import OpwrightError, RungMissing

RungName = Literal["composed", "function", "cpp", "cuda"]
RUNGS: tuple[RungName, ...] = ("composed", "function", "cpp", "cuda")
Origin = Literal["reference", "derived", "written"]


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to run an operator.

    Attributes:
        name: "composed" (the reference), "function", "cpp" or "cuda".
        available: Whether it can serve calls here.
        origin: Whether it is the reference itself, derived from it, or written by hand.
        reason: Why it is missing; empty if it is available.
        variants: How many variants of it are loaded in this process.
        devices: The kinds of devices whose tensors it serves; empty if it serves any.
    """

    name: RungName
    available: bool
    origin: Origin
    reason: str = ""
    variants: int = 0
    devices: tuple[str, ...] = ()


# The kinds of devices that a rung serves; other rungs serve any.
_DEVICES: Mapping[RungName, tuple[str, ...]] = {"cpp": ("cpu",), "cuda": ("cuda",)}


@dataclass(frozen=True, slots=True)
class Way:
    """How one rung serves calls.

    Attributes:
        origin: Where the rung comes from.
        serve: Takes the arguments as the operator does.
        examine: Raises an OpwrightError if the rung is unavailable.
        count: How many variants of it are loaded.
        devices: The kinds of devices whose tensors it serves; None for the usual ones.
        source: Returns the handwritten source; None if there is none.
    """

    origin: Origin
    serve: Callable[..., Any]
    examine: Callable[[], object] = lambda: None
    count: Callable[[], int] = lambda: 0
    devices: tuple[str, ...] | None = None
    source: Callable[[], str] | None = None


class Ladder:
    """The rungs of one operator.

    Args:
        operator: The name of the operator.
        ways: How each rung serves.
    """

    def __init__(self, operator: str, ways: Mapping[RungName, Way]) -> None:
        self._operator = operator
        self._ways = dict(ways)

    def put(self, name: RungName, way: Way) -> None:
        """Replace the way in which a rung serves."""
        self._ways[name] = way

    def written(self, name: RungName) -> str | None:
        """The handwritten source of a rung; None if there is none."""
        source = self._ways[name].source if name in RUNGS else None
        return source and source()

    def rungs(self) -> tuple[Rung, ...]:
        """Which rungs exist here, and why one is missing."""
        return tuple(self._rung(name) for name in RUNGS)

    def on(self, name: RungName) -> Callable[..., Any]:
        """The function that serves calls on a rung.

        Raises:
            RungMissing: If the rung does not exist here.
        """
        if name not in RUNGS:
            raise RungMissing(f"there is no rung '{name}'", hint=f"the rungs are {', '.join(RUNGS)}")
        way = self._ways[name]
        try:
            way.examine()
        except OpwrightError as refusal:
            fact = f"{self._operator} has no rung '{name}' here: {refusal.fact}"
            raise RungMissing(fact, place=refusal.place, hint=refusal.hint) from refusal
        return way.serve

    def _rung(self, name: RungName) -> Rung:
        way = self._ways[name]
        devices = _DEVICES.get(name, ()) if way.devices is None else way.devices
        try:
            way.examine()
        except OpwrightError as refusal:
            return Rung(name, False, way.origin, refusal.fact, way.count(), devices)
        return Rung(name, True, way.origin, "", way.count(), devices)

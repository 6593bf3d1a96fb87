"""call_cost: what one call costs beside a peer, for operators so small that the call is all there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from opwright.benchmark.stopwatch import Plan, Timing, interleave


@dataclass(frozen=True, slots=True)
class CallCost:
    """Times of one call, measured in turns."""

    subject: Timing
    peer: Timing

    @property
    def extra_us(self) -> float:
        """How many microseconds a call of the subject takes more than one of the peer; negative if fewer."""
        return self.subject.median_us - self.peer.median_us

    def to_json(self) -> dict[str, Any]:
        """Return the times as values that `json.dumps` takes."""
        return asdict(self) | {"extra_us": self.extra_us}


def call_cost(
    subject: Callable[..., Any], peer: Callable[..., Any], args: tuple[Any, ...], *, plan: Plan | None = None
) -> CallCost:
    """Time one call of a function and of a peer on the same arguments, in the grad mode of the caller."""
    timings = interleave({"subject": lambda: subject(*args), "peer": lambda: peer(*args)}, plan=plan)
    return CallCost(timings["subject"], timings["peer"])

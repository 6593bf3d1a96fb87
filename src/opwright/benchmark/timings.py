"""Timings: what a benchmark found, contender by contender."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from opwright.benchmark.machine import Machine
from opwright.benchmark.stopwatch import Timing
from opwright.report.shown import Shown

if TYPE_CHECKING:
    from rich.console import RenderableType

REFERENCE = "composed"
COMPILED = "torch.compile"
PEERS = (REFERENCE, COMPILED)
PASSES = ("forward", "training")

Outcome = Literal["measured", "wrong", "absent"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender on one sample.

    Attributes:
        sample: The name of the sample.
        contender: "composed", another rung, "callable", or "torch.compile".
        outcome: "measured"; "wrong" if the result is, which voids the timings; "absent" if it could not run.
        reason: Why it is wrong or absent, or why there is no time for training; empty otherwise.
        forward: Time of the call under `no_grad`; None if there is none.
        training: Time of the call and the gradients for all inputs; None if there is none.
        error: The largest error of the outputs against float64, relative to the largest value.
        eager_error: The same for the reference in the dtype of the benchmark.
        gradient_error: Like `error`, for the gradients.
        eager_gradient_error: Like `eager_error`, for the gradients.
    """

    sample: str
    contender: str
    outcome: Outcome
    reason: str = ""
    forward: Timing | None = None
    training: Timing | None = None
    error: float | None = None
    eager_error: float | None = None
    gradient_error: float | None = None
    eager_gradient_error: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class BenchReport(Shown):
    """All entries, and the machine on which they were measured.

    Attributes:
        subject: The name of the operator.
        dtype: The dtype of the samples.
        device: Where they were.
        machine: The facts of the machine.
        entries: Sample by sample, contender by contender.
        missing: The rungs that are not there, and why.
    """

    subject: str
    dtype: str
    device: str
    machine: Machine
    entries: tuple[Entry, ...]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether no contender computes something wrong."""
        return all(entry.outcome != "wrong" for entry in self.entries)

    def speedup(self, entry: Entry, passage: str, peer: str) -> float | None:
        """Return how many times faster an entry is than a peer on the same sample; None where a time is missing.

        Args:
            entry: One of the entries.
            passage: "forward" or "training".
            peer: "composed" or "torch.compile".
        """
        own: Timing | None = getattr(entry, passage)
        theirs: Timing | None = next(
            (
                getattr(other, passage)
                for other in self.entries
                if other.sample == entry.sample and other.contender == peer
            ),
            None,
        )
        return theirs.median_us / own.median_us if own and theirs else None

    def to_json(self) -> dict[str, Any]:
        """Return the report, with the speed-ups, as values that `json.dumps` takes."""
        return {
            "subject": self.subject,
            "passed": self.passed,
            "dtype": self.dtype,
            "device": self.device,
            "machine": asdict(self.machine),
            "missing": dict(self.missing),
            "entries": [asdict(entry) | {"speedup": self._speedups(entry)} for entry in self.entries],
        }

    def _table(self) -> RenderableType:
        from opwright.report.bench_table import bench_table  # imports rich

        return bench_table(self.to_json())

    def _speedups(self, entry: Entry) -> dict[str, dict[str, float | None]]:
        return {passage: {peer: self.speedup(entry, passage, peer) for peer in PEERS} for passage in PASSES}

"""The facts that a page is made from; their JSON is all that rendering reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from opwright.drawing.graph import Diagram


@dataclass(frozen=True, slots=True)
class StepFacts:
    """One step of a pass.

    Attributes:
        kind: "kernel", "library", "view", "number" or "check".
        name: Of the kernel, or of what the step makes.
        summary: What it does, in words; for a kernel the loops, what it reads and what it writes.
        formulas: What it computes, as text.
        mathml: The same as MathML, for a kernel.
        source: Its function in C++; empty if it has none.
    """

    kind: str
    name: str
    summary: str
    formulas: tuple[str, ...]
    mathml: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class PassFacts:
    """The forward or the backward pass.

    Attributes:
        name: "forward" or "backward".
        before: Its graph before fusion.
        after: Its graph after fusion.
        steps: What runs, in order.
        source: All of its C++.
    """

    name: str
    before: Diagram
    after: Diagram
    steps: tuple[StepFacts, ...]
    source: str


@dataclass(frozen=True, slots=True)
class SavedFacts:
    """A tensor that is kept from the forward pass for the backward pass.

    Attributes:
        name: What it is called.
        shape: Its dtype and shape.
        size_bytes: How large it is.
        role: "argument", "output" or "intermediate"; the first two exist anyway.
    """

    name: str
    shape: str
    size_bytes: int
    role: str


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """A sample: its name, and how many elements its tensors have."""

    name: str
    elements: int


@dataclass(frozen=True, slots=True)
class PageFacts:
    """All that a page shows.

    Attributes:
        name: Of the operator.
        place: Where its function is defined.
        schema: As the dispatcher knows it.
        samples: All of them.
        traced_for: The arguments that the rest is shown for.
        function: The function's source.
        rungs: The ways to compute it, and what each is or why it is missing.
        refusal: Why there are no kernels; empty if there are.
        passes: Forward, and backward if there is one.
        saved: What is kept for the backward pass.
        memory: Of each contender, the bytes that it keeps, by sample; see `opwright.benchmark.saved`.
        second_order: Times of second derivatives; see `opwright.benchmark.second_order`.
        roofline: The machine's limits, and the work and times of each pass; see `opwright.benchmark.work`.
        bench: The JSON of a `BenchReport`.
        verdict: The JSON of a `Verdict`.
        audit: The JSON of a `Scorecard`.
        machine: Where this was made, and with which versions.
    """

    name: str
    place: str
    schema: str
    samples: tuple[SampleFacts, ...]
    traced_for: tuple[str, ...]
    function: str
    rungs: tuple[tuple[str, str], ...]
    refusal: str
    passes: tuple[PassFacts, ...]
    saved: tuple[SavedFacts, ...]
    machine: Mapping[str, Any]
    memory: Mapping[str, Any] | None = None
    second_order: Mapping[str, Any] | None = None
    roofline: Mapping[str, Any] | None = None
    bench: Mapping[str, Any] | None = None
    verdict: Mapping[str, Any] | None = None
    audit: Mapping[str, Any] | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing that was tried is wrong."""
        return all(each["passed"] for each in (self.verdict, self.audit, self.bench) if each is not None)

    def to_json(self) -> dict[str, Any]:
        """Return the facts as values that `json.dumps` takes."""
        return asdict(self)

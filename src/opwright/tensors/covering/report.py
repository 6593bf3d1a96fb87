"""Report: what a type does with each function of PyTorch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from opwright.report.shown import Page, Shown
from opwright.tensors.covering.pages import page_of

if TYPE_CHECKING:
    from rich.console import RenderableType

How = Literal["handled", "by rule", "fallback", "fails", "wrong", "not tried"]
HOWS: tuple[How, ...] = get_args(How)


@dataclass(frozen=True, slots=True)
class Entry:
    """One function and what the type does with it.

    Attributes:
        name: Its full name, such as "torch.Tensor.__radd__".
        family: The function that it spells, such as "add".
        how: "handled" by the type itself; "by rule", derived from another spelling or by a rule of a wrapper;
            "fallback", on dense tensors; "fails", with an exception; "wrong", with another result than dense tensors
            have; "not tried", if no call was found that works on dense tensors.
        detail: The exception, or the difference from the dense result.
        disagrees: How it differs from other spellings of its function; empty if it does not.
        signature: Which argument of the function it does not take, or ignores; empty if it takes all.
    """

    name: str
    family: str
    how: How
    detail: str = ""
    disagrees: str = ""
    signature: str = ""

    def __str__(self) -> str:
        said = "; ".join(filter(None, (self.detail, self.disagrees, self.signature)))
        return f"{self.name}: {self.how}" + (f": {said}" if said else "")


@dataclass(frozen=True, slots=True, repr=False)
class CoverageReport(Shown):
    """All functions, and what a type does with them.

    Attributes:
        subject: The name of the type.
        entries: One for each overridable function of PyTorch, sorted by name; of types with `__torch_dispatch__`
            then one for each operation of core ATen.
    """

    subject: str
    entries: tuple[Entry, ...]

    def _with(self, how: How) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.how == how)

    @property
    def handled(self) -> tuple[Entry, ...]:
        """What the type serves by itself."""
        return self._with("handled")

    @property
    def by_rule(self) -> tuple[Entry, ...]:
        """What is derived from a handler of another spelling, or follows a rule of a wrapper."""
        return self._with("by rule")

    @property
    def fallback(self) -> tuple[Entry, ...]:
        """What runs on dense tensors; of types made elsewhere, what gives plain tensors."""
        return self._with("fallback")

    @property
    def failing(self) -> tuple[Entry, ...]:
        """What raises, although it works on dense tensors."""
        return self._with("fails")

    @property
    def wrong(self) -> tuple[Entry, ...]:
        """What gives something else than dense tensors: values, shape, dtype, metadata, a copy for a view."""
        return self._with("wrong")

    @property
    def not_tried(self) -> tuple[Entry, ...]:
        """Functions for which no call was found that works on the dense sample."""
        return self._with("not tried")

    @property
    def disagreeing(self) -> tuple[Entry, ...]:
        """Spellings that do something else than others of their function."""
        return tuple(entry for entry in self.entries if entry.disagrees)

    @property
    def signatures(self) -> tuple[Entry, ...]:
        """Functions of which the type does not take an argument, or ignores it."""
        return tuple(entry for entry in self.entries if entry.signature)

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong, disagrees or has another signature. What fails says so, which is no fault."""
        return not (self.wrong or self.disagreeing or self.signatures)

    def counts(self) -> dict[str, int]:
        """How many functions there are of each kind."""
        found = Counter(entry.how for entry in self.entries)
        return {
            **{how: found[how] for how in HOWS},
            "disagreeing": len(self.disagreeing),
            "signatures": len(self.signatures),
        }

    def to_dict(self) -> dict[str, Any]:
        """The report as values that `json.dumps` takes."""
        entries = [asdict(entry) for entry in self.entries]
        return {"subject": self.subject, "passed": self.passed, "counts": self.counts(), "entries": entries}

    to_json = to_dict

    def page(self, title: str | None = None, *, preface: str = "", why: Mapping[str, str] | None = None) -> Page:
        """The report as a page in Markdown: counts, what is wrong, and what fails, with alike remarks together.

        Args:
            title: Its title; the name of the type if not given.
            preface: Paragraphs below the title.
            why: Reasons to print beside faults: the first whose key, a regular expression, is found in what is said of
                a function, "torch.argmax: dtype torch.float32, not torch.int64".
        """
        return Page(page_of(self.to_dict(), title or self.subject, preface, why or {}), "markdown")

    def _table(self) -> RenderableType:
        from opwright.report.coverage_table import coverage_table  # imports rich

        return coverage_table(self.to_dict())

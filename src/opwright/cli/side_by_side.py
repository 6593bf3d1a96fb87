"""side_by_side: the parts of a command's work in processes beside each other, whose compilers use all cores."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import typer

from opwright.binding.native import native
from opwright.cli.terminal import progress_on_stderr
from opwright.samples import Progress
from opwright.toolchain.process.children import in_children
from opwright.toolchain.process.cores import available_cores

Found = TypeVar("Found")
Judged = TypeVar("Judged", bound="Shareable")
_MOST = 8


class Shareable(Protocol):
    """A verdict or a scorecard."""

    def to_json(self) -> Mapping[str, Any]:
        """Values that `json.dumps` takes."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """How the command line was called.

    Attributes:
        may_fork: Whether this process does nothing else, so that it has no threads of OpenMP that a fork would lose.
    """

    may_fork: bool = False


def workers(context: typer.Context, device: str = "cpu", part: str = "") -> int:
    """How many processes to work in; one for work on a GPU, and for what is a part already."""
    invocation = context.obj or Invocation()
    may_fork = invocation.may_fork and sys.platform == "linux" and hasattr(os, "fork")
    if not may_fork or device != "cpu" or part:
        return 1
    return max(1, min(available_cores(), _MOST))


def titled(tell: Progress, name: str) -> Progress:
    """Say whose steps they are."""
    return lambda what, done, total: tell(f"{name}: {what}", done, total)


def parts_of(count: int, work: Callable[[str, Progress], list[Found]]) -> list[list[Found]]:
    """Run `work(part, tell)` for each part, such as "2/3", and return what each found, fit for JSON.

    Args:
        count: How many parts; a single one is worked on in this process, as the part "", the whole.
        work: Loads what it works on itself: nothing of the user's has run before.
    """
    with progress_on_stderr() as tell:
        if count == 1:
            return [work("", tell)]
        return in_children(lambda number, say: work(f"{number + 1}/{count}", say), count, tell, native.abandon)


def ahead_by_parts(count: int, work: Callable[[str, Progress], object]) -> None:
    """Do work of which only the caches remain, such as building kernels; nothing if it cannot be shared out."""
    if count > 1:
        parts_of(count, lambda part, tell: [work(part, tell)])


def by_subject(found: list[list[Any]]) -> list[list[Any]]:
    """What was found by part, by subject instead."""
    return [list(parts) for parts in zip(*found, strict=True)]


def whole(
    parts: Sequence[Mapping[str, Any]],
    read: Callable[[Mapping[str, Any]], Judged],
    together: Callable[[Sequence[Judged]], Judged],
) -> Mapping[str, Any]:
    """What was found of a subject, from its parts as JSON."""
    return parts[0] if len(parts) == 1 else together([read(part) for part in parts]).to_json()

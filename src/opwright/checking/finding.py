"""Finding: the outcome of a check on one sample: a measurement, a fault, or why the check was skipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A measurement; errors are relative to the largest value of the exact result."""

    detail: str = ""
    error: float | None = None
    eager_error: float | None = None


class Fault(Exception):
    """The candidate is wrong."""

    def __init__(self, detail: str, error: float | None = None, eager_error: float | None = None) -> None:
        self.finding = Finding(detail, error, eager_error)
        super().__init__(detail)


class Skipped(Exception):
    """A check or a row does not apply; the message says why, and what would make it apply, if anything can."""

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{reason} (hint: {hint})" if hint else reason)


def one_line(error: BaseException) -> str:
    """Write an exception as its type and the first line of its message."""
    message = str(error).strip().split("\n", 1)[0]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


@contextmanager
def fault_within(where: str) -> Iterator[None]:
    """Prefix the message of a Fault with a place."""
    try:
        yield
    except Fault as fault:
        found = fault.finding
        raise Fault(f"{where}: {found.detail}", found.error, found.eager_error) from fault


@contextmanager
def by_the_reference() -> Iterator[None]:
    """Run code that calls only the reference: if it raises, the sample cannot test the candidate.

    Raises:
        Skipped: In place of the exception raised inside.
    """
    try:
        yield
    except Skipped:
        raise
    except Exception as error:
        hint = "let samples= make calls that the reference accepts"
        raise Skipped(f"the reference itself raises {one_line(error)}", hint=hint) from error

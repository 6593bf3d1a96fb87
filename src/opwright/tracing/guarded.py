"""Derive, and turn what torch raises into refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from opwright.errors import InternalError, OpwrightError, TracingFailed
from opwright.tracing.recording.faults import comes_from_a_signal, line_of_ours, summary

Derived = TypeVar("Derived")

_MISTAKES = (InternalError, AssertionError, AttributeError, KeyError, NameError)


def guarded(reference: Callable[..., Any], derive: Callable[[], Derived]) -> Derived:
    """Derive something from a reference.

    Raises:
        OpwrightError: A refusal; an error of torch becomes one, with a place in the reference.
    """
    try:
        return derive()
    except OpwrightError:
        raise
    except Exception as error:
        if comes_from_a_signal(error):
            raise
        from opwright.tracing.trace import place_in  # imports sympy, as whatever derives has done

        said = summary(error)
        place = place_in(reference, error)
        if line := _of_ours(error):
            fact = f"deriving it failed with {said} at {line}, which is a fault of opwright, not of this function"
            raise TracingFailed(fact, place=place, hint="report it, with this function") from error
        raise TracingFailed(f"tracing it failed with {said}", place=place) from error


def _of_ours(error: Exception) -> str | None:
    """The line of opwright behind an error that only a bug of ours can raise; None for other errors."""
    return line_of_ours(error) if isinstance(error, _MISTAKES) else None

"""Deriving apart from what torch raises meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from opwright.errors import OpwrightError, TracingFailed

Derived = TypeVar("Derived")


def guarded(reference: Callable[..., Any], derive: Callable[[], Derived]) -> Derived:
    """Derive something from a reference.

    Raises:
        OpwrightError: A refusal; what torch raises becomes one, with a place in the reference.
    """
    try:
        return derive()
    except OpwrightError:
        raise
    except Exception as error:
        from opwright.tracing.trace import place_in  # imports sympy, as whatever derives has done

        fact = f"tracing it failed with {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise TracingFailed(fact, place=place_in(reference, error)) from error

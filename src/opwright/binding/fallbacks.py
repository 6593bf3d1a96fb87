"""Falling back to the reference: a warning, once for each reason, or an error where the settings are strict."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

from opwright.errors import FallbackRefused, FallbackWarning, OpwrightError
from opwright.settings import Settings

_PASSED_OVER = ("opwright", "torch")


class Fallbacks:
    """Warns why one operator falls back to its reference.

    Args:
        name: The name of the operator.
        settings: Whether to warn, and whether falling back is an error.
        usual: Tells, for a refusal, what serves the call.
    """

    def __init__(
        self, name: str, settings: Settings, usual: Callable[[OpwrightError], str] = lambda _: "your function"
    ) -> None:
        self.name = name
        self._usual = usual
        self._settings = settings
        self._said: set[str] = set()

    @property
    def is_strict(self) -> bool:
        """Whether falling back is an error."""
        return self._settings.strict

    def tell(self, refusal: OpwrightError, instead: str | None = None) -> None:
        """Warn, once for each reason.

        Args:
            refusal: Why.
            instead: What serves the call; None for the usual.

        Raises:
            FallbackRefused: If the settings are strict.
        """
        fact = f"{self.name} falls back to {instead or self._usual(refusal)}: "
        if self.is_strict:
            raise FallbackRefused(fact + refusal.fact, place=refusal.place, hint=refusal.hint) from refusal
        where = f"{refusal.place}: " if refusal.place else ""
        text = f"opwright: {fact}{where}{refusal.fact}"
        if text in self._said:
            return
        if self._settings.notify:
            hint = f" (hint: {refusal.hint})" if refusal.hint else ""
            warnings.warn(text + hint, FallbackWarning, stacklevel=_level_of_the_caller())
        self._said.add(text)  # not before: if warnings are errors, every call raises


def _level_of_the_caller() -> int:
    """The stack level, from `tell`, of the code that called the operator, outside of this package and torch."""
    level, frame = 0, sys._getframe(1)
    while frame is not None:
        level += 1
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _PASSED_OVER:
            return level
        frame = frame.f_back  # type: ignore[assignment]
    return 1

"""hot_path: whether calls run in C++, or through Python."""

from __future__ import annotations

import shlex

from opwright.binding.native import hot_path as extension_of
from opwright.doctor.finding import Finding
from opwright.errors import OpwrightError
from opwright.settings import Settings

_NAME = "hot path"


def hot_path(settings: Settings) -> Finding:
    """Find whether the extension module that calls operators is built, being built, or failed."""
    if settings.tape == "off":
        return Finding(_NAME, "limited", "OPWRIGHT_TAPE=off: calls go through Python", "unset OPWRIGHT_TAPE")
    extension = extension_of(settings)
    try:
        if extension.find() is not None:
            return Finding(_NAME, "works", "built; calls run in C++")
        if extension.was_refused():
            return Finding(
                _NAME,
                "limited",
                "the compiler failed on it, so calls go through Python; remove the record once the cause is fixed",
                f"rm -r {shlex.quote(str(settings.cache_directory / 'failed'))}",
            )
        if extension.is_being_built():
            return Finding(_NAME, "works", "is being built by another process; until then, calls go through Python")
    except OpwrightError as refusal:
        return Finding(_NAME, "limited", f"cannot be built, so calls go through Python: {refusal.fact}")
    return Finding(_NAME, "works", "not built yet: it is built during the first calls, once on this machine")

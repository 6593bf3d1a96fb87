"""Modes that the compiler never sees."""

from __future__ import annotations


class Unseen:
    """To be inherited before a mode: torch would wrap its dispatch for the compiler, and import the compiler for it."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

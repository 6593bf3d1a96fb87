"""Modes that the compiler never sees."""

from __future__ import annotations


class Unseen:
    """A base class to put before a mode, whose dispatch torch otherwise wraps for the compiler, importing it."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

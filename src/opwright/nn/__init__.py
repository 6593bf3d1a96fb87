"""Modules whose forward runs as one operator."""

from opwright.nn.served import module

__all__ = ["module"]

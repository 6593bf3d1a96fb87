"""Projects that stand on their own: an operator ejected with its sources, and a new one from a template."""

from opwright.projects.eject import Ejected, eject


__all__ = ["Ejected", "eject"]

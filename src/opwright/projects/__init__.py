"""Projects that people own: an operator ejected with its sources, and a new one to begin with."""

from opwright.projects.ejecting import Ejected, eject
from opwright.projects.new import new_project

__all__ = ["Ejected", "eject", "new_project"]
